package sqlite

import "github.com/google/uuid"

// taskID is a task's id as it is stored: 16 bytes instead of 36, in half a dozen
// indexes. What is no UUID in its canonical form is NULL, which equals nothing.
func taskID(id string) any {
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.String() != id {
		return nil
	}
	return parsed[:]
}

// id reads a task's id; empty for NULL.
func (r *row) id() string {
	stored, err := uuid.FromBytes(r.stmt.ColumnRawBlob(r.column()))
	if err != nil {
		return ""
	}
	return stored.String()
}
