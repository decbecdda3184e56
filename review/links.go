package review

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Links are the templates of links to the code, with {changelist}, {path} and {line}.
// An empty template gives no link.
type Links struct {
	// Template of the link to a change, with {changelist}, such as
	// https://swarm.example.com/changes/{changelist}. Empty: no links.
	Change string `yaml:"change"`
	// Template of the link to a file, with {path} and perhaps {changelist} and {line}.
	// Empty: no links.
	File string `yaml:"file"`
}

var (
	linkScheme   = regexp.MustCompile(`^(?:https?|p4)://`)
	lineFragment = regexp.MustCompile(`#[^#]*\{line\}[^#]*$`)
)

// ToChange returns the link to a change.
func (l Links) ToChange(cl Changelist) string { return l.fill(l.Change, cl, Place{}) }

// ToFile returns the link to a place of a change. It is empty for a path that redaction
// has changed.
func (l Links) ToFile(cl Changelist, p Place) string {
	if strings.Contains(p.Path, "[REDACTED") {
		return ""
	}
	return l.fill(l.File, cl, p)
}

func (l Links) fill(template string, cl Changelist, p Place) string {
	if !linkScheme.MatchString(template) {
		return ""
	}
	if p.StartLine < 1 {
		template = lineFragment.ReplaceAllString(template, "")
	}
	segments := strings.Split(strings.TrimLeft(p.Path, "/"), "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(s), "@", "%40")
	}
	return strings.NewReplacer("{changelist}", cl.String(), "{path}", strings.Join(segments, "/"), "{line}", strconv.Itoa(max(p.StartLine, 1))).Replace(template)
}
