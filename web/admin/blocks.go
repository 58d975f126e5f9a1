package admin

import (
	"net/http"
	"time"
)

// block is a blocked host.
type block struct {
	Host  string    `json:"host"`
	Note  string    `json:"note"`
	SetAt time.Time `json:"set_at,omitzero"`
}

func (s *server) listBlocks(w http.ResponseWriter, r *http.Request) error {
	blocks, err := s.service.Blocks(r.Context())
	if err != nil {
		return err
	}
	answer := struct {
		Blocks []block `json:"blocks"`
	}{make([]block, len(blocks))}
	for i, b := range blocks {
		answer.Blocks[i] = block(b)
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (s *server) addBlock(w http.ResponseWriter, r *http.Request) error {
	var wanted struct {
		Host string `json:"host"`
		Note string `json:"note"`
	}
	if err := readJSON(w, r, &wanted); err != nil {
		return err
	}
	b, err := s.block(r.Context(), wanted.Host, wanted.Note)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, block(b))
}

func (s *server) removeBlock(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := s.unblock(r.Context(), query.Get("host"), query.Get("note")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// auditLine is one line of what operators did.
type auditLine struct {
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Action string    `json:"action"`
	Target string    `json:"target"`
	Reason string    `json:"reason,omitempty"`
	Note   string    `json:"note,omitempty"`
	Links  int64     `json:"links,omitempty"` // to which it was done
}

// audit lists the latest lines, or those before a number.
func (s *server) audit(w http.ResponseWriter, r *http.Request) error {
	before, err := number(r, "before", 0, 1<<62)
	if err != nil {
		return err
	}
	n, err := number(r, "limit", 100, 1000)
	if err != nil {
		return err
	}
	lines, err := s.service.Audit(r.Context(), uint64(before), int(n))
	if err != nil {
		return err
	}
	answer := struct {
		Lines []auditLine `json:"lines"`
	}{make([]auditLine, len(lines))}
	for i, line := range lines {
		answer.Lines[i] = auditLine(line)
	}
	return writeJSON(w, http.StatusOK, answer)
}
