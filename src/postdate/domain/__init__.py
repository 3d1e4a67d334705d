"""What is decided without I/O, a clock or randomness?"""
