package postgres

import (
	"strings"
	"time"
	"unicode/utf8"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// column makes the array of one column's values.
func column[Row, Value any](rows []Row, value func(Row) Value) []Value {
	values := make([]Value, len(rows))
	for i, row := range rows {
		values[i] = value(row)
	}
	return values
}

// taskID encodes a task id; what isn't a UUID in its canonical form becomes
// NULL, which matches nothing and can't be inserted.
func taskID(id string) pgtype.UUID {
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.String() != id {
		return pgtype.UUID{}
	}
	return pgtype.UUID{Bytes: parsed, Valid: true}
}

// key encodes a name or an id that a client chose. Text in Postgres holds neither
// U+0000 nor broken UTF-8; what has one becomes NULL, like a task id that is none.
func key(s string) pgtype.Text {
	return pgtype.Text{String: s, Valid: !strings.ContainsRune(s, 0) && utf8.ValidString(s)}
}

// stamp encodes a time, cut to milliseconds; the zero time becomes NULL.
func stamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t.Truncate(time.Millisecond), Valid: !t.IsZero()}
}

// moment decodes a time.
func moment(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// filled keeps an empty value from becoming NULL in a column that has none.
func filled(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// stateNumber encodes a state; the schema refuses numbers that are none.
func stateNumber(s a2apb.TaskState) int16 {
	return int16(s) //nolint:gosec // there are eight
}
