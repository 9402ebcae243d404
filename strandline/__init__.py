"""The shell people touch: settings, wiring, command line, HTTP API, the stack of services."""
