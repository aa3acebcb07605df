package postgres

// spanNames finds a statement's name by its text, which is what the tracer sees.
var spanNames = nameTexts()

func nameTexts() map[string]string {
	names := make(map[string]string, len(texts))
	for name, named := range texts {
		names[newStatement(name, named).text] = name
	}
	return names
}

// statementName names the span of a statement. Listings are put together from
// clauses and have no text that is known beforehand.
func statementName(text string) string {
	if name, ok := spanNames[text]; ok {
		return name
	}
	return "list_tasks"
}
