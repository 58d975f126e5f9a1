package web

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// node is an element as a reader meets it.
type node struct{ *html.Node }

func parsePage(t *testing.T, render func(io.Writer) error) node {
	t.Helper()
	var page bytes.Buffer
	if err := render(&page); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&page)
	if err != nil {
		t.Fatal(err)
	}
	return node{root}
}

func (n node) attr(key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// value returns what a field holds.
func (n node) value() string {
	if n.Data == "textarea" && n.FirstChild != nil {
		return n.FirstChild.Data
	}
	return n.attr("value")
}

func (n node) has(key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

func (n node) hidden() bool {
	return n.has("hidden") || n.Type == html.ElementNode && (n.Data == "template" || n.Data == "script")
}

func (n node) id(t *testing.T, id string) node {
	t.Helper()
	return n.first(t, "", "id", id)
}

// first returns the first element of that name, any name when it is empty, whose
// attribute has the value.
func (n node) first(t *testing.T, name, key, value string) node {
	t.Helper()
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && (name == "" || d.Data == name) && (node{d}).attr(key) == value {
			return node{d}
		}
	}
	t.Fatalf("no <%s %s=%q>", name, key, value)
	return node{}
}

// text returns what is not hidden, with blanks and line ends as one blank.
func (n node) text() string {
	var b strings.Builder
	var walk func(node)
	walk = func(n node) {
		if n.hidden() {
			return
		}
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for c := range n.ChildNodes() {
			walk(node{c})
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}
