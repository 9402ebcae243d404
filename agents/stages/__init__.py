"""One file a stage, each with the same anatomy: the contract in the docstring, then `run`. agents/pipeline.py has the
table."""
