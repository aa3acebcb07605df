package config_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/stretchr/testify/require"
)

const minimal = `
agents:
  - name: orders
    card:
      description: Orders things
      version: "1"
      defaultInputModes: [text/plain]
      defaultOutputModes: [text/plain]
      skills:
        - {id: order, name: Order, description: Orders, tags: [orders]}
`

func with(t *testing.T, replaced, by string) string {
	t.Helper()
	require.Contains(t, minimal, replaced)
	return strings.Replace(minimal, replaced, by, 1)
}

func TestASmallFileHasSensibleDefaults(t *testing.T) {
	t.Parallel()
	got, err := config.Parse([]byte(minimal))
	require.NoError(t, err)
	require.Equal(t, config.DefaultLimits(), got.Limits)
	a := got.Default()
	require.Same(t, got.Agent("orders"), a)
	require.Equal(t, config.LifecycleTask, a.Lifecycle)
	require.True(t, a.Dedupe.On())
	require.True(t, a.Streaming())
	require.Equal(t, 7*24*time.Hour, a.InputTimeout.Value())
	require.Equal(t, "orders", a.Card.GetName())
	require.Equal(t, "order", a.Card.GetSkills()[0].GetId())
	require.Nil(t, got.Agent("others"))
}

func TestWhatIsNotInTheSchemaIsRefusedByName(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ file, names string }{
		"unknown key at the top":     {"colour: red\n" + minimal, "colour"},
		"unknown key of an agent":    {with(t, "name: orders", "name: orders\n    colour: red"), "colour"},
		"unknown limit":              {"limits: {bodies: 1}\n" + minimal, "bodies"},
		"unknown member of the card": {with(t, "version:", "colour: red\n      version:"), "colour"},
		"limit out of range":         {"limits: {event: 99999999}\n" + minimal, "/limits/event"},
		"no room for one body":       {"limits: {body: 2097152, body_memory: 1048576}\n" + minimal, "body_memory"},
		"duration without a unit":    {with(t, "name: orders", "name: orders\n    lease: 15"), "/agents/0/lease"},
		"lease that is too long":     {with(t, "name: orders", "name: orders\n    lease: 11m"), "lease"},
		"unknown lifecycle":          {with(t, "name: orders", "name: orders\n    lifecycle: maybe"), "/agents/0/lifecycle"},
		"reserved name":              {with(t, "name: orders", "name: self"), "/agents/0/name"},
		"upper case name":            {with(t, "name: orders", "name: Orders"), "/agents/0/name"},
		"no agents":                  {"agents: []", "/agents"},
		"no version":                 {with(t, `version: "1"`, ""), "version"},
		"card with interfaces":       {with(t, "version:", "supportedInterfaces: []\n      version:"), "supportedInterfaces"},
		"rule for no skill":          {with(t, "name: orders", "name: orders\n    skills: [{id: cook, task_when: []}]"), `"cook"`},
		"hybrid without a rule":      {with(t, "name: orders", "name: orders\n    lifecycle: hybrid"), `"order"`},
		"unknown condition":          {with(t, "name: orders", "name: orders\n    skills: [{id: order, task_when: [sunday]}]"), "task_when"},
		"same name twice":            {minimal + strings.TrimPrefix(minimal, "\nagents:\n"), "agents[1].name"},
		"not YAML":                   {"agents: [", ""},
		"not an object":              {"[]", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(c.file))
			require.ErrorContains(t, err, c.names)
		})
	}
}

func TestOnlyOneAgentIsTheDefault(t *testing.T) {
	t.Parallel()
	second := strings.Replace(strings.TrimPrefix(minimal, "\nagents:\n"), "name: orders", "name: second", 1)
	both := minimal + second
	got, err := config.Parse([]byte(both))
	require.NoError(t, err)
	require.Nil(t, got.Default(), "two agents and none says that it is the default")
	_, err = config.Parse([]byte(strings.ReplaceAll(both, "    card:", "    default: true\n    card:")))
	require.ErrorContains(t, err, "default")
}

func TestTheVersionFollowsTheContentsAlone(t *testing.T) {
	t.Parallel()
	version := func(file string) string {
		a, err := config.Parse([]byte(file))
		require.NoError(t, err)
		return a.Version
	}
	require.Equal(t, version(minimal), version("# a comment\n"+minimal))
	require.NotEqual(t, version(minimal), version(with(t, "Orders things", "Sells things")))
}

func TestASkillsRuleIsFound(t *testing.T) {
	t.Parallel()
	got, err := config.Parse([]byte(with(t, "name: orders",
		"name: orders\n    lifecycle: hybrid\n    skills: [{id: order, task_when: [side_effect, retention]}]")))
	require.NoError(t, err)
	when, known := got.Default().TaskWhen("order")
	require.True(t, known)
	require.Equal(t, []config.Condition{config.SideEffect, config.Retention}, when)
	_, known = got.Default().TaskWhen("cook")
	require.False(t, known)
}

func TestEveryKeyOfTheSchemaIsReadAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	read := func(raw []byte) (o object) {
		require.NoError(t, json.Unmarshal(raw, &o))
		return o
	}
	same := func(schema object, v any) {
		var fields []string
		for f := range reflect.TypeOf(v).Fields() {
			if tag := f.Tag.Get("json"); tag != "-" {
				fields = append(fields, tag)
			}
		}
		var keys []string
		for k := range schema.Properties {
			keys = append(keys, k)
		}
		require.ElementsMatch(t, keys, fields)
	}
	file := read(config.Schema())
	same(file, config.Agents{})
	same(read(file.Properties["limits"]), config.Limits{})
	agent := read(read(file.Properties["agents"]).Items)
	same(agent, config.Agent{})
	same(read(read(agent.Properties["skills"]).Items), config.SkillRule{})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte("agents: &a [*a]"))
	f.Add([]byte("{}"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = config.Parse(data) // must return
	})
}
