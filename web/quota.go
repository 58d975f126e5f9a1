package web

import (
	"net/http"

	"snip/quota"
	"snip/shortener"
)

// quota tells the client its allowance. It never tells what is left of the wider
// levels: that would show how far there is to go to silence everybody.
func (s *server) quota(w http.ResponseWriter, r *http.Request) error {
	who, err := s.payer(r)
	if err != nil {
		return err
	}
	a, err := s.service.Allowance(r.Context(), who)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, mediaJSON, s.viewOf(a))
}

func (s *server) viewOf(a shortener.Allowance) *allowanceView {
	v := &allowanceView{Open: a.Open}
	if a.Usage.Level == "" || a.Usage.Max == quota.Unlimited { // the wider levels still start anew each day
		v.ResetsAt = quota.DayOf(s.now()).End
		return v
	}
	remaining := a.Usage.Remaining()
	v.Limit, v.Used, v.Remaining, v.ResetsAt = &a.Usage.Max, &a.Usage.Used, &remaining, a.Usage.ResetAt
	return v
}
