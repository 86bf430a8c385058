"""The question styles, one file each."""
