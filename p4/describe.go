package p4

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

// A description is the output of p4 describe. The embedded Change has no files and
// recipients yet.
type description struct {
	review.Change
	user string // as the server spells it
	// isNamed is set if a rule found the user in the description or in a job.
	isNamed bool
	root    string // common path of all files; empty if the server reports none
	files   []*file
	charset string // of the names and texts that are not UTF-8
}

// A file is one file of a changelist, from which a [review.File] is made.
type file struct {
	review.File
	path     string // as the server spells it, %40 for @
	fileType fileType
	base     string   // revision it is compared with, path#rev; empty for none
	source   source   // of a copy; no path for none
	merged   []source // what was integrated into the revision before
	charset  string   // of the lines of all revisions that are not UTF-8
	// carried are the findings on what the file takes over from reviewed revisions.
	carried []review.CreditedFinding
	// shelf is the changelist of a shelved file, 0 for a submitted one. The
	// Revision of a shelved file is the one it is based on, 0 if there is none.
	shelf review.Changelist
}

// spec names the revision of the file that the changelist made.
func (f *file) spec() string {
	if f.shelf > 0 {
		return f.path + "@=" + f.shelf.String()
	}
	return revision(f.path, f.Revision)
}

// previous is the number of the revision before the change, 0 if there is none.
func (f *file) previous() int {
	if f.shelf > 0 {
		return f.Revision
	}
	return f.Revision - 1
}

func revision(path string, rev int) string { return path + "#" + strconv.Itoa(rev) }

// pathOf is the path of path#rev or path@=change: in a path, p4 writes # as %23
// and @ as %40.
func pathOf(spec string) string {
	if i := strings.IndexAny(spec, "#@"); i >= 0 {
		return spec[:i]
	}
	return spec
}

// describe reads the changelist's metadata. It does not use -s: tagged output has
// no diffs, and -s drops the sources of moves. If the server fails to find the sources,
// such as those of an obliterated file, it describes the changelist without them. Of a
// changelist that is too large to be described it reads all but the files.
func (s *server) describe(ctx context.Context, number review.Changelist, how review.ReadOptions) (description, error) {
	var flags []string
	if how.Shelved {
		flags = []string{"-S"}
	}
	d, err := s.describeWith(ctx, number, how, flags)
	switch class := failure.ClassOf(err); {
	case err == nil:
	case class == failure.NotFound:
		return s.explainUnknown(ctx, number, how, err)
	case class == failure.UpstreamInternal || isOdd(class, false):
		if short, shortErr := s.describeWith(ctx, number, how, append(flags, "-s")); shortErr == nil {
			d, err = short, nil
		}
		if d.Number == number { // described before the failure, or without the sources
			d.Gaps, err = append(d.Gaps, review.GapSources), nil
		}
	case class == failure.TooLarge || class == failure.NetworkTimeout && how.LastAttempt:
		head, headErr := s.describeWith(ctx, number, how, append(flags, "-m", "1"))
		if headErr != nil {
			head, headErr = s.changeSpec(ctx, number, how)
		}
		if headErr == nil {
			head.Jobs, head.files, head.SkippedBy, head.Empty = nil, nil, "", review.EmptyTooLarge
			return head, nil
		}
	}
	return d, err
}

func (s *server) describeWith(ctx context.Context, number review.Changelist, how review.ReadOptions, flags []string) (description, error) {
	records, err := s.Stats(ctx, command.Cmd{Name: "describe", Flags: flags, Operands: []string{number.String()}})
	for _, rec := range records {
		if rec.Fields["change"] == number.String() {
			d, parseErr := s.describePending(number, rec, how)
			return d, cmp.Or(err, parseErr)
		}
	}
	if err != nil {
		return description{}, err
	}
	return description{}, failure.Errorf(failure.UpstreamInternal, "p4 describe succeeded and did not describe the changelist")
}

// changeSpec reads what p4 change reports: no file. Its dates are in the server's time zone,
// which is taken for UTC.
func (s *server) changeSpec(ctx context.Context, number review.Changelist, how review.ReadOptions) (description, error) {
	records, err := s.Stats(ctx, command.Cmd{Name: "change", Flags: []string{"-o"}, Operands: []string{number.String()}})
	for _, rec := range records {
		if at, timeErr := time.Parse("2006/01/02 15:04:05", rec.Fields["Date"]); timeErr == nil && rec.Fields["Change"] == number.String() {
			return s.parseDescription(number, map[string]string{
				"user": rec.Fields["User"], "desc": rec.Fields["Description"], "status": rec.Fields["Status"],
				"changeType": rec.Fields["Type"], "time": strconv.FormatInt(at.Unix(), 10),
			}, how)
		}
	}
	return description{}, cmp.Or(err, error(failure.Errorf(failure.UpstreamInternal, "p4 change succeeded and did not report the changelist")))
}

// shelvingTime is how long a shelve may take: the server notes its time before the
// files arrive, and the trigger runs after that.
const shelvingTime = 2 * time.Minute

// describePending parses a description. If the server can lag, a pending changelist
// that is not what the trigger saw is an error: not submitted yet, without a shelf, or
// with an older shelf. In the last attempt the shelf is taken as it is.
func (s *server) describePending(number review.Changelist, rec command.Record, how review.ReadOptions) (description, error) {
	if rec.Fields["status"] == "submitted" || !s.info.mayLag() {
		return s.parseDescription(number, rec.Fields, how)
	}
	if !how.Shelved {
		return description{}, failure.Errorf(failure.ReplicaBehind, "the changelist is pending on this server: it lags, or the changelist is not submitted")
	}
	d, err := s.parseDescription(number, rec.Fields, how)
	isOld := how.ShelvedAt.Sub(d.Time) > shelvingTime
	switch {
	case err != nil:
	case how.LastAttempt && isOld:
		d.Gaps = append(d.Gaps, review.GapShelf)
	case how.LastAttempt:
	case len(d.files) == 0:
		err = failure.Errorf(failure.ReplicaBehind, "the changelist has no shelf on this server: it lags, or the shelf was deleted")
	case isOld:
		err = failure.Errorf(failure.ReplicaBehind, "the shelf of this server is older than the one that the trigger reported: it lags")
	}
	return d, err
}

// explainUnknown separates a changelist that does not exist from one that a
// replica does not have yet: triggers run on the commit server, and replicas lag. A
// shelf that does not exist is skipped.
func (s *server) explainUnknown(ctx context.Context, number review.Changelist, how review.ReadOptions, unknown error) (description, error) {
	gone := description{Change: review.Change{SkippedBy: review.SkipRuleGone}}
	newest, err := s.newest(ctx)
	if err != nil {
		return gone, err
	}
	switch {
	case newest < number || how.Shelved && s.info.mayLag() && !how.LastAttempt:
		return gone, failure.Errorf(failure.ReplicaBehind, "the server does not know the changelist, its newest is %d: it lags, or the number does not exist", newest)
	case how.Shelved:
		return gone, nil
	}
	return gone, unknown
}

// parseDescription parses the fields of p4 describe, and sets the reason if there are no
// files.
func (s *server) parseDescription(number review.Changelist, fields map[string]string, how review.ReadOptions) (description, error) {
	if !how.Shelved && fields["status"] != "submitted" {
		return description{}, failure.Errorf(failure.InputInvalid, "the changelist is not submitted: review a shelf with the shelve-commit trigger")
	}
	d := description{user: fields["user"], root: fields["path"], Change: review.Change{Number: number, Shelved: how.Shelved}}
	d.Restricted = fields["changeType"] == "restricted" && !s.restrictedToAll
	old, _ := strconv.ParseInt(fields["oldChange"], 10, 64) // 0 if it kept its number
	d.OldNumber = review.Changelist(old)
	var texts [][]byte // a server that is not in unicode mode stores the bytes its users sent
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !utf8.ValidString(fields[name]) {
			texts = append(texts, []byte(fields[name]))
		}
	}
	d.charset, _ = charsetOf(texts, s.charset)
	d.charset = cmp.Or(d.charset, s.charset, defaultCharset)
	d.User, d.Description = d.name(fields["user"]), d.text(fields["desc"])
	seconds, err := strconv.ParseInt(fields["time"], 10, 64)
	if err != nil {
		return description{}, failure.Errorf(failure.UpstreamInternal, "p4 describe reported no time of submission")
	}
	d.Time = time.Unix(seconds, 0).UTC()
	for i := range numbered(fields, "job") {
		d.Jobs = append(d.Jobs, fields["job"+i])
	}
	for i := range numbered(fields, "depotFile") {
		d.files = append(d.files, d.parseFile(fields, i))
	}
	switch {
	case len(d.files) > 0:
		return d, nil
	case fields["changeType"] == "restricted":
		d.Empty = review.EmptyRestricted
	case cmp.Or(fields["stream"], fields["streamSpec"]) != "":
		d.Empty = review.EmptyStream
	default:
		d.Empty = review.EmptyNoFiles
	}
	if d.Shelved && d.Empty != review.EmptyStream {
		d.SkippedBy = review.SkipRuleGone
	}
	return d, nil
}

// numbered yields the numbers behind the fields of a list, such as name0 and name1, in order.
// The server may leave out elements.
func numbered(fields map[string]string, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(fields) {
			n := strconv.Itoa(i)
			if _, ok := fields[name+n]; ok && !yield(n) {
				return
			}
		}
	}
}

// parseFile parses the fields that end in index. A deleted file has no size and
// digest; a shelved file may be based on no revision. A file that cannot be named to p4 is
// skipped.
func (d *description) parseFile(fields map[string]string, index string) *file {
	size, _ := strconv.ParseInt(fields["fileSize"+index], 10, 64) // 0 if it is not known
	f := &file{path: fields["depotFile"+index], fileType: parseType(fields["type"+index])}
	f.File = review.File{
		DepotPath: d.path(f.path), Action: review.Action(fields["action"+index]), Type: d.name(fields["type"+index]),
		Revision: revisionNumber(fields["rev"+index]), Size: max(size, 0), Digest: fields["digest"+index],
	}
	if d.Shelved {
		f.shelf = d.Number
	}
	switch {
	case actionSkip(f.Action) != "": // it is not named to p4
	case f.path != withoutControls(f.path):
		f.Skipped = review.SkipName
	case f.Revision < 1 && !d.Shelved:
		f.Skipped = review.SkipUnreadable
	}
	if source := fields["fromFile"+index]; source != "" {
		f.addSource(source, d.path(source), fields["fromRev"+index], "")
	}
	return f
}

// pathEscapes are the characters p4 encodes in paths, in every output and argument.
var pathEscapes = strings.NewReplacer("%40", "@", "%23", "#", "%25", "%", "%2A", "*")

// path returns a path as people write it, for display: p4 always gets the
// path as it spelled it.
func (d *description) path(path string) string { return d.name(pathEscapes.Replace(path)) }

// name returns a name for display, with its control characters as escapes: text that has
// them is not text for redaction.
func (d *description) name(s string) string {
	s = d.decode(s)
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// decode returns a name of the server as UTF-8.
func (d *description) decode(s string) string {
	text, _ := decodeLines(s, d.charset)
	return text
}

// text returns a text of the server as UTF-8, without the line ends of Windows that some
// clients submit.
func (d *description) text(s string) string { return strings.ReplaceAll(d.decode(s), "\r\n", "\n") }
