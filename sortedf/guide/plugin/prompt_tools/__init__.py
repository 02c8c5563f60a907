"""A plug-in of `sortedf`: everything here goes by the lengths of prompts."""
