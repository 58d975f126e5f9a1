package shortener_test

import (
	"math"
	"testing"

	"snip/shortener"
)

func TestChecksValidate(t *testing.T) {
	t.Parallel()
	sound := shortener.Checks{Price: 500, Budget: 500, Calls: 3, NetworkCalls: 3, ClientCalls: 3}
	if err := sound.Validate(); err != nil {
		t.Error(err)
	}
	for text, wrong := range map[string]shortener.Checks{
		"a call at 501 micro-units does not fit into a day's budget of 500": {Price: 501, Budget: 500, Calls: 3, NetworkCalls: 3, ClientCalls: 3},
		"a client's 4 calls must not exceed a network's 3":                  {Budget: 1, Calls: 3, NetworkCalls: 3, ClientCalls: 4},
		"a network's 4 calls must not exceed the service's 3":               {Budget: 1, Calls: 3, NetworkCalls: 4, ClientCalls: 3},
	} {
		if err := wrong.Validate(); err == nil || err.Error() != text {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}

func TestDayAtMost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ price, budget, calls, want int64 }{
		{500, 1_000_000, 2000, 1_000_000},
		{500, 1_000_499, 5000, 1_000_000}, // the rest is no whole call
		{500, 1_000_000, 10, 5000},
		{0, 7, math.MaxInt64, 0},
		{1, math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := (shortener.Checks{Price: row.price, Budget: row.budget, Calls: row.calls}).DayAtMost(); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{0: "0", 1: "0.000001", 500: "0.0005", 1_000_000: "1", 12_340_000: "12.34", 100_000_000: "100", math.MaxInt64: "9223372036854.775807"} {
		if got := shortener.Units(micros); got != want {
			t.Errorf("%d: %q, want %q", micros, got, want)
		}
	}
}
