"""The form of the user message of every question LLM, on which the demo's was trained."""


def user_message(style: str, prompt: str) -> str:
    """Return the user message; the system message explains the *style* of the questions."""
    return f"style: {style}\nprompt: {prompt}"
