"""The formats, one file each; `sortedf.traces.format.FORMATS` finds every file here."""
