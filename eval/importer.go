package eval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
)

// Imported is what an import came to.
type Imported struct {
	Cases int
	// LeftOut says of everything that became no case, or no expectation, why.
	LeftOut []string
}

func (i *Imported) leaveOut(format string, args ...any) {
	i.LeftOut = append(i.LeftOut, fmt.Sprintf(format, args...))
}

// full reports whether no more cases are wanted.
func (i *Imported) full(limit int) bool { return limit > 0 && i.Cases == limit }

// finish fails for an import that came to nothing.
func (i *Imported) finish() error {
	if i.Cases == 0 {
		return errors.New("import cases: nothing was imported")
	}
	return nil
}

// A foreign case is one of a benchmark.
type foreign struct {
	name, description, diff string
	verdict                 verdict
}

// write writes f as a directory below out, unless it is no case by our rules:
// what reviewers said of code that the diff does not show is left out first.
func (i *Imported) write(out string, f foreign) error {
	if !strings.HasSuffix(f.diff, "\n") {
		f.diff += "\n"
	}
	files, err := parseDiff(f.diff)
	if err != nil {
		i.leaveOut("%s: its diff %v", f.name, err)
		return nil
	}
	f.verdict.Expected = i.shown(f.name, files, f.verdict.Expected)
	f.verdict.Forbidden = i.shown(f.name, files, f.verdict.Forbidden)
	text, err := yaml.Marshal(f.verdict)
	if err != nil {
		return fmt.Errorf("encode case %s: %w", f.name, err)
	}
	written := map[string]string{diffFile: f.diff, descriptionFile: strings.TrimSpace(f.description) + "\n", caseFile: string(text)}
	if _, err := newCase(f.name, written); err != nil {
		i.leaveOut("%v", err)
		return nil
	}
	dir := filepath.Join(out, f.name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("write case %s: %w", f.name, err)
	}
	for name, text := range written {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write case %s: %w", f.name, err)
		}
	}
	i.Cases++
	return nil
}

// shown returns those of xs that are about code the diff shows.
func (i *Imported) shown(name string, files []file, xs []expected) []expected {
	return slices.DeleteFunc(xs, func(x expected) bool {
		start, end, err := x.lines()
		at := slices.IndexFunc(files, func(f file) bool { return f.path == x.Path })
		if err == nil && at >= 0 && (start == 0 || files[at].shows(start, end)) {
			return false
		}
		i.leaveOut("%s: a remark about %s that the diff does not show", name, x.Path)
		return true
	})
}

// said makes an expectation of what a reviewer wrote about lines of a file; 0
// for the file as a whole.
func said(path string, start, end int, remark string) expected {
	x := expected{Path: path, Says: strings.TrimSpace(remark), About: telling(remark)}
	switch {
	case start <= 0:
	case end <= start:
		x.Line = start
	default:
		x.Lines = fmt.Sprintf("%d-%d", start, end)
	}
	return x
}

var (
	inCode = regexp.MustCompile("`([^`\n]{3,60})`")
	word   = regexp.MustCompile(`[\pL_][\pL\pN_]{4,}`)
)

// maxTelling bounds the words of an imported expectation.
const maxTelling = 12

// telling are the words of a remark by which another that means the same may be
// known: first those in quotes, then names. Long words say little, and only have
// to do where there is nothing else.
func telling(remark string) []string {
	var quoted, names, long []string
	for _, m := range inCode.FindAllStringSubmatch(remark, -1) {
		quoted = append(quoted, strings.TrimSpace(m[1]))
	}
	for _, w := range word.FindAllString(remark, -1) {
		switch {
		case strings.Contains(w, "_") || strings.ContainsFunc(w[1:], unicode.IsUpper):
			names = append(names, w)
		case len(w) >= 8:
			long = append(long, strings.ToLower(w))
		}
	}
	best := slices.Concat(quoted, names)
	if len(best) == 0 {
		best = long
	}
	var all []string
	for _, w := range best {
		if !slices.Contains(all, w) && len(all) < maxTelling {
			all = append(all, w)
		}
	}
	return all
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf makes the name of a case, which is also one of a directory, of an id.
func nameOf(id string) string { return strings.Trim(notInName.ReplaceAllString(id, "_"), "._") }
