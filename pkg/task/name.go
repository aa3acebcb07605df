package task

// MaxName bounds the name of a tenant or agent, in bytes.
const MaxName = 100

// ValidName tells whether a tenant or agent may have a name: lower-case letters,
// digits and '-'. Such a name stands in keys, URLs and subjects as it is.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
