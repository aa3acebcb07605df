package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var sources embed.FS

// statement is a named SQL statement. Its parameters are numbered once, when the
// program starts: that costs more than the statement itself where it is short.
type statement struct {
	name   string
	text   string
	params []string
}

// args are the values of a statement's parameters by name, all of them and no
// others.
type args map[string]any

// with makes the arguments of pgx's query methods: Query(ctx, s.text, s.with(a)).
func (s *statement) with(a args) pgx.QueryRewriter { return call{statement: s, args: a} }

type call struct {
	*statement
	args
}

// RewriteQuery puts the arguments in the order of their numbers.
func (c call) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	if len(c.args) != len(c.params) {
		return "", nil, fmt.Errorf("statement %s has %d parameters, not %d", c.name, len(c.params), len(c.args))
	}
	values := make([]any, len(c.params))
	for i, name := range c.params {
		value, ok := c.args[name]
		if !ok {
			return "", nil, fmt.Errorf("statement %s lacks @%s", c.name, name)
		}
		values[i] = value
	}
	return c.text, values, nil
}

var parameter = regexp.MustCompile(`@[a-z_]+`)

func newStatement(name, named string) *statement {
	s := &statement{name: name}
	numbers := map[string]string{}
	s.text = parameter.ReplaceAllStringFunc(named, func(p string) string {
		if numbers[p] == "" {
			s.params = append(s.params, p[1:])
			numbers[p] = "$" + strconv.Itoa(len(s.params))
		}
		return numbers[p]
	})
	return s
}

// texts holds the statements of sql/ by name, parameters named. The lists of
// columns that several statements share are filled in.
var texts = readTexts()

func readTexts() map[string]string {
	all := map[string]string{}
	files, err := fs.Glob(sources, "sql/*.sql")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		content, err := fs.ReadFile(sources, file)
		if err != nil {
			panic(err)
		}
		splitStatements(string(content), all)
	}
	return all
}

// splitStatements finds statements by the line "-- name: …" before each. What is
// said about them stays behind.
func splitStatements(content string, into map[string]string) {
	for _, part := range strings.Split(content, "-- name: ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		var lines []string
		for line := range strings.Lines(body) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		text := strings.TrimSuffix(strings.TrimSpace(strings.Join(lines, "")), ";")
		into[name] = columns.Replace(text)
	}
}

// text is the text of a statement; a name that is not in sql/ is a mistake that
// no start of the program survives.
func text(name string) string {
	t, ok := texts[name]
	if !ok {
		panic("no statement is named " + name)
	}
	return t
}

func named(name string) *statement { return newStatement(name, text(name)) }
