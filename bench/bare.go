package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
)

// answer is a whole response, but for the Date that net/http adds.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// serveBare gives one answer to every request, with nothing done but to read the
// request and write the answer: the ceiling of any server over net/http. It runs
// until ctx ends.
func serveBare(ctx context.Context, encoded string) error {
	var a answer
	if err := json.Unmarshal([]byte(encoded), &a); err != nil {
		return fmt.Errorf("-bare: %w", err)
	}
	type field struct {
		name   string
		values []string
	}
	var fields []field // walking a map would be work
	for name, values := range a.Header {
		fields = append(fields, field{name, values})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	fmt.Fprintf(os.Stderr, "{\"msg\":\"listening\",\"address\":%q}\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		h := w.Header()
		for _, f := range fields {
			h[f.name] = f.values
		}
		w.WriteHeader(a.Status)
		if len(a.Body) > 0 {
			w.Write(a.Body)
		}
	}))
}

// startBare starts a bare server that answers as snip has answered, and makes
// sure that it does.
func (b *bench) startBare(ctx context.Context, like answer, method, path string) (*server, error) {
	encoded, err := json.Marshal(like)
	if err != nil {
		return nil, err
	}
	s, err := b.start(ctx, b.self, "-bare", string(encoded))
	if err != nil {
		return nil, err
	}
	got, err := request(ctx, method, s.url+path, "")
	if err == nil && !reflect.DeepEqual(got, like) {
		err = fmt.Errorf("the bare server's answer is another than snip's, so they cannot be compared:\n%v\n%v", got, like)
	}
	if err != nil {
		s.kill()
		return nil, err
	}
	return s, nil
}
