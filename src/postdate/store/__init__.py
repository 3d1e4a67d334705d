"""Where does all SQL live?

Plain functions over an open `Transaction`, written once for SQLite and PostgreSQL.
"""
