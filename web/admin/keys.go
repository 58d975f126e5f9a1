package admin

import (
	"context"
	"net/http"
	"time"

	"snip/shortener"
)

// key is an API key as an operator sees it.
type key struct {
	Name      string    `json:"name"`
	ID        string    `json:"id"`    // 16 hexadecimal digits
	Daily     int64     `json:"daily"` // links per UTC day
	Used      *int64    `json:"used"`  // of them today; null where they cannot be counted
	CreatedAt time.Time `json:"created_at"`
	Override  *int64    `json:"override,omitempty"` // what holds in place of daily for now
}

// newKey is the answer in which a key is made, the only one with its text.
type newKey struct {
	key
	Text shortener.Token `json:"key"`
}

// viewKey adds what is used today.
func (s *server) viewKey(ctx context.Context, k shortener.Key) key {
	v := key{Name: k.Name, ID: k.ID.String(), Daily: k.Daily, CreatedAt: k.CreatedAt}
	if limit := s.service.Limits(k.Client()).Client; limit != k.Daily {
		v.Override = &limit
	}
	if a, err := s.service.Allowance(ctx, k.Client()); err == nil {
		v.Used = &a.Usage.Used
	}
	return v
}

func (s *server) listKeys(w http.ResponseWriter, r *http.Request) error {
	keys, err := s.service.Keys(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Keys []key `json:"keys"`
	}{make([]key, len(keys))}
	for i, k := range keys {
		answer.Keys[i] = s.viewKey(r.Context(), k)
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *server) createKey(w http.ResponseWriter, r *http.Request) error {
	var wanted struct {
		Name  string `json:"name"`
		Daily int64  `json:"daily"`
	}
	if err := readJSON(w, r, &wanted); err != nil {
		return err
	}
	made, text, err := s.makeKey(r.Context(), wanted.Name, wanted.Daily)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, newKey{s.viewKey(r.Context(), made), text})
}

func (s *server) changeKey(w http.ResponseWriter, r *http.Request) error {
	var wanted struct {
		Daily int64 `json:"daily"`
	}
	if err := readJSON(w, r, &wanted); err != nil {
		return err
	}
	changed, err := s.limitKey(r.Context(), r.URL.Query().Get("name"), 0, wanted.Daily)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.viewKey(r.Context(), changed))
}

func (s *server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	if err := s.endKey(r.Context(), r.URL.Query().Get("name"), 0); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
