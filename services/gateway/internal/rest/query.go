package rest

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// parameter is a query parameter of any route.
type parameter struct {
	// As ProtoJSON spells it, then its other spellings.
	names []string
	// What it may hold, and the check; nil takes any text.
	allowed string
	valid   func(string) bool
}

var parameters = []parameter{
	{names: []string{"contextId", "context_id"}},
	{names: []string{"status"}, allowed: "must be the name of a task state", valid: isState},
	{names: []string{"pageSize", "page_size"}, allowed: "must be a whole number", valid: isInt32},
	{names: []string{"pageToken", "page_token"}},
	{names: []string{"historyLength", "history_length"}, allowed: "must be a whole number", valid: isInt32},
	// The official Go client sends lastUpdatedAfter.
	{
		names:   []string{"statusTimestampAfter", "status_timestamp_after", "lastUpdatedAfter"},
		allowed: "must be a time such as 2026-03-01T09:00:00.120Z", valid: isTime,
	},
	{names: []string{"includeArtifacts", "include_artifacts"}, allowed: "must be true or false", valid: isBool},
	{names: []string{"tenant"}},
}

// rewriteQuery checks the parameters that are known and leaves no others, each
// under its own name: what grpc-gateway says of a wrong one names no field.
func rewriteQuery(u *url.URL) error {
	if u.RawQuery == "" {
		return nil
	}
	given, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return a2aerr.Invalid("query", "must be well-formed")
	}
	known := url.Values{}
	for _, p := range parameters {
		var values []string
		for _, name := range p.names {
			values = append(values, given[name]...)
		}
		switch values = slices.Compact(values); {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return a2aerr.Invalid(p.names[0], "must be given once")
		case p.valid != nil && !p.valid(values[0]):
			return a2aerr.Invalid(p.names[0], p.allowed)
		}
		known.Set(p.names[0], values[0])
	}
	u.RawQuery = known.Encode()
	return nil
}

func isState(v string) bool {
	_, ok := a2apb.TaskState_value[v]
	return ok
}

func isInt32(v string) bool {
	_, err := strconv.ParseInt(v, 10, 32)
	return err == nil
}

func isBool(v string) bool { return v == "true" || v == "false" }

func isTime(v string) bool {
	t, err := time.Parse(time.RFC3339Nano, v)
	return err == nil && timestamppb.New(t).IsValid()
}
