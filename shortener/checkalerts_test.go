package shortener_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"snip/shortener"
)

// TestOperatorsHearOfTheMoney spends the day's money and sees what operators are
// told, each once.
func TestOperatorsHearOfTheMoney(t *testing.T) {
	t.Parallel()
	f := newChecked(t, checkedSetup{change: func(c *shortener.Checks) { c.Budget = 10*price + 1 }})
	told := 0
	for i := range 12 {
		f.pass(time.Second)
		_ = f.make(client(i<<8), fmt.Sprintf("https://%d.example/", i))
		notices, err := f.Notices(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, n := range notices[told:] {
			if n.Kind != shortener.KindBudget {
				t.Errorf("of the kind %s", n.Kind)
			}
			ids = append(ids, n.ID+": "+n.Text)
		}
		told = len(notices)
		var want []string
		if spent, ok := map[int]string{5: "0.0025", 8: "0.004", 9: "0.0045", 10: "0.005"}[i+1]; ok {
			const text = "2026-11-29/reputation-budget/%[1]d: %[1]d %% of the money of 2026-11-29 for checks of destinations is spent:" +
				" %[2]s of 0.005001. The day ends at 2026-11-30T00:00:00Z."
			want = []string{fmt.Sprintf(text, 10*(i+1), spent)}
		}
		if !slices.Equal(ids, want) {
			t.Errorf("after %d calls %q, want %q", i+1, ids, want)
		}
	}
}
