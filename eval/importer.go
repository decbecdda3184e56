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

// Imported is the result of an import.
type Imported struct {
	Cases int
	// LeftOut holds the reason for every case and expectation that was left out.
	LeftOut []string
}

func (i *Imported) leaveOut(format string, args ...any) {
	i.LeftOut = append(i.LeftOut, fmt.Sprintf(format, args...))
}

// full reports whether the limit is reached.
func (i *Imported) full(limit int) bool { return limit > 0 && i.Cases == limit }

// finish returns an error for an import without cases.
func (i *Imported) finish() error {
	if i.Cases == 0 {
		return errors.New("import cases: nothing was imported")
	}
	return nil
}

// datasetDir returns dir/dataset if it holds the file name, else dir.
func datasetDir(dir, name string) string {
	if _, err := os.Stat(filepath.Join(dir, "dataset", name)); err == nil {
		return filepath.Join(dir, "dataset")
	}
	return dir
}

// A benchmarkCase is a case of a benchmark before it is written.
type benchmarkCase struct {
	name, description, diff string
	yaml                    caseYAML
}

// write writes f as a directory below out if it is a valid case. Expectations
// about code that the diff does not show are left out.
func (i *Imported) write(out string, f benchmarkCase) error {
	if !strings.HasSuffix(f.diff, "\n") {
		f.diff += "\n"
	}
	files, err := parseDiff(f.diff)
	if err != nil {
		i.leaveOut("%s: its diff %v", f.name, err)
		return nil
	}
	f.yaml.Expected = i.shown(f.name, files, f.yaml.Expected)
	f.yaml.Forbidden = i.shown(f.name, files, f.yaml.Forbidden)
	text, err := yaml.Marshal(f.yaml)
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

// shown returns the expectations about code that the diff shows.
func (i *Imported) shown(name string, files []file, xs []expectationYAML) []expectationYAML {
	return slices.DeleteFunc(xs, func(x expectationYAML) bool {
		start, end, err := x.lines()
		f := findFile(files, x.Path)
		if err == nil && f != nil && (start == 0 || f.shows(start, end)) {
			return false
		}
		i.leaveOut("%s: a remark about %s that the diff does not show", name, x.Path)
		return true
	})
}

// newExpectation returns an expectation for a reviewer's remark about lines of a
// file; 0 is the whole file.
func newExpectation(path string, start, end int, remark string) expectationYAML {
	x := expectationYAML{Path: path, Says: strings.TrimSpace(remark), About: distinctiveWords(remark)}
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

// maxWords bounds the words of an imported expectation.
const maxWords = 12

// distinctiveWords returns the words of a remark that identify others with the
// same meaning: code in quotes, then names. Long words are less specific and are
// used only if there is neither.
func distinctiveWords(remark string) []string {
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
		if !slices.Contains(all, w) && len(all) < maxWords {
			all = append(all, w)
		}
	}
	return all
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf turns an ID into the name of a case, which is also a directory name.
func nameOf(id string) string { return strings.Trim(notInName.ReplaceAllString(id, "_"), "._") }
