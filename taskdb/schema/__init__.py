"""Tables, columns, indices and views of the task database, and the stored form of records."""
