"""How does a database get from one schema to the next?

Numbered steps, run by Alembic; each is one hand-written script per database.
"""
