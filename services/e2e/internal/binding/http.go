package binding

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// Response is an HTTP response, read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends any HTTP request and reads the whole response.
func Do(ctx context.Context, client *http.Client, method, url string, header http.Header, body []byte) (*Response, error) {
	r, err := begin(ctx, client, method, url, header, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	return finish(r)
}

// begin sends a request and leaves the body of the response to the caller.
func begin(ctx context.Context, client *http.Client, method, url string, header http.Header, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header = header
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	return answer, nil
}

func finish(r *http.Response) (*Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}
	return &Response{Status: r.StatusCode, Header: r.Header, Body: body}, nil
}

func mediaType(h http.Header) string {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return h.Get("Content-Type")
	}
	return t
}
