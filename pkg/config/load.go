package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
)

//go:embed agents.schema.json
var schemaJSON []byte

// Schema is the JSON Schema of the agents file (draft 2020-12).
func Schema() []byte { return bytes.Clone(schemaJSON) }

// Load reads the agents file at path; see Parse.
func Load(path string) (*Agents, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read agents file: %w", err)
	}
	a, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("agents file %s: %w", path, err)
	}
	return a, nil
}

// Parse reads an agents file, YAML or JSON. An unknown key, a value out of its
// range and agents that contradict each other are errors that name the place.
func Parse(data []byte) (*Agents, error) {
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	if err := validate(asJSON); err != nil {
		return nil, err
	}
	a := &Agents{Limits: DefaultLimits()}
	if err := json.Unmarshal(asJSON, a); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	a.fillDefaults()
	if err := a.check(); err != nil {
		return nil, err
	}
	a.Version, err = hash(asJSON)
	return a, err
}

func validate(asJSON []byte) error {
	schema, err := compile()
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	if err := schema.Validate(doc); err != nil {
		return fmt.Errorf("not as agents.schema.json says: %w", err)
	}
	return nil
}

func compile() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	// Absolute: a relative name is looked up in the working directory, which may be
	// gone.
	const name = "urn:errand:agents.schema.json"
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("add schema: %w", err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return schema, nil
}

// UnmarshalJSON reads the card; members that A2A doesn't know are errors, since
// a typo in a card is found by nobody else.
func (c *Card) UnmarshalJSON(b []byte) error {
	c.AgentCard = &a2apb.AgentCard{}
	if err := protojson.Unmarshal(b, c.AgentCard); err != nil {
		return fmt.Errorf("read card: %w", err)
	}
	return nil
}

func (a *Agents) fillDefaults() {
	if len(a.Agents) == 1 {
		a.Agents[0].Default = true
	}
	for i := range a.Agents {
		a.Agents[i].fillDefaults()
	}
}

func (a *Agent) fillDefaults() {
	a.Lifecycle = cmp.Or(a.Lifecycle, LifecycleTask)
	a.Dedupe = cmp.Or(a.Dedupe, "on")
	a.FollowUps = cmp.Or(a.FollowUps, FollowUpsAppend)
	a.InputModes = cmp.Or(a.InputModes, "on")
	a.Concurrency = cmp.Or(a.Concurrency, 64)
	a.DirectConcurrency = cmp.Or(a.DirectConcurrency, 64)
	a.MaxQueued = cmp.Or(a.MaxQueued, 1_000_000)
	a.MaxAttempts = cmp.Or(a.MaxAttempts, 3)
	a.MaxRuntime = cmp.Or(a.MaxRuntime, Duration(time.Hour))
	a.InputTimeout = cmp.Or(a.InputTimeout, Duration(7*24*time.Hour))
	a.Lease = cmp.Or(a.Lease, Duration(15*time.Second))
	if a.Card.GetName() == "" {
		a.Card.Name = a.Name
	}
}

func (a *Agents) check() error {
	var errs []error
	seen := map[string]bool{}
	defaults := 0
	for i := range a.Agents {
		agent := &a.Agents[i]
		if seen[agent.Name] {
			errs = append(errs, fmt.Errorf("agents[%d].name: %q is used twice", i, agent.Name))
		}
		seen[agent.Name] = true
		if agent.Default {
			defaults++
		}
		errs = append(errs, agent.check())
	}
	if defaults > 1 {
		errs = append(errs, errors.New("agents: only one may be the default"))
	}
	if l := a.Limits; l.BodyMemory < l.Body {
		errs = append(errs, fmt.Errorf("limits.body_memory: %d bytes have no room for one body of %d", l.BodyMemory, l.Body))
	}
	return errors.Join(errs...)
}

// MaxLease bounds an agent's lease: a dead executor is waited for so long.
const MaxLease = 10 * time.Minute

// check looks at what the schema can't say: times, and the skills in the card.
func (a *Agent) check() error {
	var errs []error
	if a.Lease.Value() > MaxLease {
		errs = append(errs, fmt.Errorf("agent %s: lease: %s is more than %s", a.Name, a.Lease.Value(), MaxLease))
	}
	inCard := map[string]bool{}
	for _, s := range a.Card.GetSkills() {
		inCard[s.GetId()] = true
		if _, known := a.TaskWhen(s.GetId()); !known && a.Lifecycle == LifecycleHybrid {
			errs = append(errs, fmt.Errorf("agent %s: skills: a hybrid agent needs a rule for skill %q of its card", a.Name, s.GetId()))
		}
	}
	for _, r := range a.Skills {
		if !inCard[r.ID] {
			errs = append(errs, fmt.Errorf("agent %s: skills: the card has no skill %q", a.Name, r.ID))
		}
	}
	return errors.Join(errs...)
}

// hash names the contents, whatever their layout, order of keys and comments.
func hash(asJSON []byte) (string, error) {
	var v any
	if err := json.Unmarshal(asJSON, &v); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	canonical, err := json.Marshal(v) // sorts keys
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:8]), nil
}
