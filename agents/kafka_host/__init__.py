"""The Kafka host: runs the table STAGES as Faust agents. Start at process.py."""
