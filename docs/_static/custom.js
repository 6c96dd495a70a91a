// Pages opened as files may not be read by others, so that a search there shows titles without extracts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
