"""Decision endpoints: typed questions about a picture, in the bodies of OpenAI, SGLang and vLLM."""
