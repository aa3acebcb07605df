package launch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// answerPatience bounds one question; a paused process doesn't answer.
const answerPatience = 2 * time.Second

// asking opens a connection for each question: there is nobody to close those that
// would be kept.
var asking = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// answers asks whether a URL answers 200.
func answers(url string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerPatience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		res, err := asking.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode == http.StatusOK {
			return nil
		}
		const most = 1000
		reason, err := io.ReadAll(io.LimitReader(res.Body, most))
		if err != nil {
			return err
		}
		return fmt.Errorf("%s: %s", res.Status, reason)
	}
}
