package boltstore

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "snip.db"), Options{})
	before := s.Health()
	if before.Bytes == 0 || before.Operations != 0 || before.Trouble != "" {
		t.Errorf("at the start: %+v", before)
	}
	for i := range 5 {
		mustCreate(t, s, noon, i, fmt.Sprintf("link-%d", i))
	}
	// The day's secret is an operation, too.
	h := s.Health()
	if h.Operations != 6 || h.Commits < 2 || h.CommitTime.Count != h.Commits || h.CommitTime.Sum < h.LastCommit || h.LastCommit <= 0 || h.WaitTime.Sum <= 0 || h.WaitTime.Count != 6 || h.TurnedAway != 0 || h.Waiting != 0 {
		t.Errorf("after six operations: %+v", h)
	}
}
