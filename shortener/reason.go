package shortener

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason says what is wrong with a field, in no language: a front end makes a
// sentence of it. It is an error for those who read a log.
type Reason struct {
	Name   string         // stable, such as "has_too_many_bytes"; what follows the field's name in a sentence
	Values map[string]any // numbers, and text that is short, printable and quoted where it was typed
}

// because returns a reason with its values, each after its name.
func because(name string, values ...any) Reason {
	r := Reason{Name: name}
	if len(values) > 0 {
		r.Values = make(map[string]any, len(values)/2)
	}
	for i := 0; i < len(values); i += 2 {
		r.Values[values[i].(string)] = values[i+1]
	}
	return r
}

func (r Reason) Error() string {
	text := strings.ReplaceAll(r.Name, "_", " ")
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		text += fmt.Sprintf(", %s %v", name, r.Values[name])
	}
	return text
}
