"""Decision endpoints: typed questions about a picture, in the bodies of OpenAI, SGLang and vLLM."""

from service.web.dialects.decisions.routes import dialect

__all__ = ["dialect"]
