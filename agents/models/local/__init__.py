"""Models that run on this machine without any key. Importing this loads none of them."""

LOCAL_NOTICE = (
    "Local mode: English only. It finds names well. It states relations only in plain sentences, and misses most of those in long mails, "
    "chats and notes. Use an API key for real extraction."
)
"""What users must be told wherever local models are chosen: at start, in the README, on the web page."""
