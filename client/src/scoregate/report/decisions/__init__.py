"""The report on logs of decisions: figures and a page.  Needs the extra `evaluate`, but for `settings`."""
