"""Models behind two seams (base.py): one reads texts, one makes vectors. registry.py opens them."""
