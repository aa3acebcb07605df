package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// write is the way of every write of a sender: each request becomes a change, or
// is refused before; the changes run; each answer is made of what its change
// decided.
func write[Request any, Change change, Answer any](
	ctx context.Context, s *Store, what string, requests []Request,
	prepare func(context.Context, Request) (Change, error),
	answer func(context.Context, Request, Change) (Answer, error),
) []Result[Answer] {
	results := make([]Result[Answer], len(requests))
	var changes []Change
	var at []int // index of each change's request
	for i, r := range requests {
		c, err := prepare(ctx, r)
		if err != nil {
			results[i].Err = wrap(what, err)
			continue
		}
		changes, at = append(changes, c), append(at, i)
	}
	for k, err := range do(ctx, s, changes) {
		i := at[k]
		if err == nil {
			results[i].Value, err = answer(ctx, requests[i], changes[k])
		}
		results[i].Err = wrap(what, err)
	}
	return results
}

// wrap says what was tried, unless the error is an answer for the sender.
func wrap(what string, err error) error {
	var forSender *a2aerr.Error
	if err == nil || errors.As(err, &forSender) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
