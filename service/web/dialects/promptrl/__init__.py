"""The reward service of FastVideo's PromptRL: videos in groups."""
