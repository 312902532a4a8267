"""What a repository says about how it is built and tested. Each module reads one kind of file and yields facts."""
