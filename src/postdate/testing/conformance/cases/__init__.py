"""Which cases make up the suite?"""
