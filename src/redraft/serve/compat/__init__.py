"""Drop-in translation services: the requests of DeepL, LibreTranslate and OpenAI, answered by this server.

Captioning tools call such a service again and again with a sentence that grows.  `continuation` recognises the
sentence, `callers` translates it as the utterance that it is, `wrappers` and `prompts` read what a tool puts round it.
Each dialect is one file.
"""
