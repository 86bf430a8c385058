"""How every question LLM is asked; the demo's was taught this form."""


def user_message(style: str, prompt: str) -> str:
    """The user message, below the system message that explains the *style* of the questions."""
    return f"style: {style}\nprompt: {prompt}"
