package main

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// diffOptions are the -d flags of describe and diff2.
type diffOptions struct {
	unified bool
	context int
	// key is what of a line is compared.
	key func(string) string
}

// parseDiffFlags reads what follows -d. Of the output forms only -du differs
// from the default, as recorded.
func parseDiffFlags(values []string) diffOptions {
	o := diffOptions{context: 3, key: func(line string) string { return line }}
	for _, v := range values {
		switch {
		case strings.HasPrefix(v, "u"):
			o.unified = true
			if n, err := strconv.Atoi(v[1:]); err == nil {
				o.context = n
			}
		case v == "w":
			o.key = func(line string) string { return strings.Join(strings.Fields(line), "") }
		case v == "b":
			o.key = func(line string) string { return strings.Join(strings.Fields(line), " ") }
		case v == "l":
			o.key = func(line string) string { return strings.TrimRight(line, "\r\n") }
		}
	}
	return o
}

// An edit replaces old[a1:a2] by new[b1:b2].
type edit struct{ a1, a2, b1, b2 int }

type comparison struct {
	old, new []string
	edits    []edit
}

func compare(old, new []byte, o diffOptions) comparison {
	c := comparison{old: splitLines(old), new: splitLines(new)}
	a, b := 0, 0
	blocks := pairLines(keys(c.old, o.key), keys(c.new, o.key))
	for _, m := range append(blocks, block{len(c.old), len(c.new), 0}) {
		if a < m.a || b < m.b {
			c.edits = append(c.edits, edit{a, m.a, b, m.b})
		}
		a, b = m.a+m.size, m.b+m.size
	}
	return c
}

// splitLines keeps line ends. A form feed ends a line too, as recorded.
func splitLines(text []byte) []string {
	var lines []string
	for len(text) > 0 {
		n := bytes.IndexAny(text, "\n\f") + 1
		if n == 0 {
			n = len(text)
		}
		lines = append(lines, string(text[:n]))
		text = text[n:]
	}
	return lines
}

func keys(lines []string, key func(string) string) []string {
	found := make([]string, len(lines))
	for i, line := range lines {
		found[i] = key(line)
	}
	return found
}

// diffText is the difference as p4 prints it, without any header.
func diffText(old, new []byte, o diffOptions) string {
	c := compare(old, new, o)
	var b strings.Builder
	if !o.unified {
		for _, e := range c.edits {
			c.writeNormal(&b, e)
		}
		return b.String()
	}
	for group := range c.groups(o.context) {
		c.writeUnified(&b, group, o.context)
	}
	return b.String()
}

func (c *comparison) writeNormal(b *strings.Builder, e edit) {
	switch {
	case e.a1 == e.a2:
		fmt.Fprintf(b, "%da%s\n", e.a1, normalRange(e.b1, e.b2))
	case e.b1 == e.b2:
		fmt.Fprintf(b, "%sd%d\n", normalRange(e.a1, e.a2), e.b1)
	default:
		fmt.Fprintf(b, "%sc%s\n", normalRange(e.a1, e.a2), normalRange(e.b1, e.b2))
	}
	writeLines(b, "< ", c.old[e.a1:e.a2])
	if e.a1 < e.a2 && e.b1 < e.b2 {
		b.WriteString("---\n")
	}
	writeLines(b, "> ", c.new[e.b1:e.b2])
}

func normalRange(from, to int) string {
	if to-from == 1 {
		return strconv.Itoa(to)
	}
	return fmt.Sprintf("%d,%d", from+1, to)
}

func writeLines(b *strings.Builder, prefix string, lines []string) {
	for _, line := range lines {
		b.WriteString(prefix + line)
		if !strings.HasSuffix(line, "\n") && !strings.HasSuffix(line, "\f") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// groups yields runs of edits whose context touches.
func (c *comparison) groups(context int) iter.Seq[[]edit] {
	return func(yield func([]edit) bool) {
		start := 0
		for i := range c.edits {
			if i+1 < len(c.edits) && c.edits[i+1].a1-c.edits[i].a2 <= 2*context {
				continue
			}
			if !yield(c.edits[start : i+1]) {
				return
			}
			start = i + 1
		}
	}
}

// writeUnified writes one hunk. Its header always has both counts, and a side
// without lines still starts at the next one.
func (c *comparison) writeUnified(b *strings.Builder, group []edit, context int) {
	first, last := group[0], group[len(group)-1]
	lead := min(context, first.a1, first.b1)
	trail := min(context, len(c.old)-last.a2, len(c.new)-last.b2)
	a, z := first.a1-lead, last.a2+trail
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", a+1, z-a, first.b1-lead+1, last.b2+trail-(first.b1-lead))
	for _, e := range group {
		writeLines(b, " ", c.old[a:e.a1])
		writeLines(b, "-", c.old[e.a1:e.a2])
		writeLines(b, "+", c.new[e.b1:e.b2])
		a = e.a2
	}
	writeLines(b, " ", c.old[a:z])
}
