package activities

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/rewrite"
)

// A liar is a provider whose every reply may be a lie. The model of a request selects it.
type liar struct {
	sim  *llmsim.Server
	lies []lie

	mu     sync.Mutex
	owner  map[string]int    // index of the lie of a file or a batch
	files  map[string][]byte // uploaded
	output map[string]bool   // IDs of output files
	told   map[string]int    // requests, by lie and request
	calls  map[string]int    // executed calls of the async lane, by the mark of the message
}

func newLiar(lies []lie) *liar {
	return &liar{
		sim: llmsim.New(llmsim.Config{}), lies: lies, owner: map[string]int{}, files: map[string][]byte{}, output: map[string]bool{},
		told: map[string]int{}, calls: map[string]int{},
	}
}

// requestOf returns the name of a request and the ID in its path.
func requestOf(r *http.Request) (name, id string) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if len(parts) > 1 {
		id = parts[1]
	}
	names := map[string]string{
		"POST responses 1": onCall, "POST files 1": onUpload, "GET files 2": onFile, "GET files 3": onContent,
		"POST batches 1": onCreate, "GET batches 1": onList, "GET batches 2": onPoll,
	}
	return names[fmt.Sprint(r.Method, " ", parts[0], " ", len(parts))], id // deletions and cancellations have no name
}

var (
	mark      = regexp.MustCompile(`\(mark \d+\)`) // of a message
	modelName = regexp.MustCompile(`"model":"lie-(\d+)"`)
	inputFile = regexp.MustCompile(`"input_file_id":"([^"]*)"`)
)

// ServeHTTP implements [http.Handler].
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	name, id := requestOf(r)
	x := &exchange{ResponseWriter: w, batch: id, body: body}
	l.mu.Lock()
	owner := l.owner[id]
	if m := modelName.FindSubmatch(body); m != nil {
		owner, _ = strconv.Atoi(string(m[1]))
	} else if m := inputFile.FindSubmatch(body); m != nil {
		owner, x.body = l.owner[string(m[1])], l.files[string(m[1])]
	}
	tale := l.lies[owner].at[name]
	if name == onContent && !l.output[id] {
		tale = nil
	}
	l.mu.Unlock()
	x.real = func() (int, []byte) { return l.execute(r, name, owner, body) }
	switch {
	case name == onList:
		l.list(x)
	case tale != nil:
		tale(x, l.tell(owner, name))
	default:
		x.pass()
	}
}

// tell counts the lies about a request.
func (l *liar) tell(owner int, request string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fmt.Sprint(owner, request)
	l.told[key]++
	return l.told[key]
}

// execute executes a request and remembers whose the new files and batches are. A batch is
// executed, and so paid, when it is created.
func (l *liar) execute(r *http.Request, name string, owner int, body []byte) (int, []byte) {
	rec := httptest.NewRecorder()
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.sim.ServeHTTP(rec, r)
	var object struct {
		ID         string `json:"id"`
		OutputFile string `json:"output_file_id"`
		ErrorFile  string `json:"error_file_id"`
	}
	_ = json.Unmarshal(rec.Body.Bytes(), &object)
	if name == onCreate && rec.Code == http.StatusOK {
		l.sim.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/batches/"+object.ID, http.NoBody))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch name {
	case onUpload:
		l.files[object.ID], l.owner[object.ID] = body, owner
	case onCreate, onPoll:
		l.owner[object.ID], l.owner[object.OutputFile], l.owner[object.ErrorFile] = owner, owner, owner
		l.output[object.OutputFile] = true
	case onCall:
		l.calls[mark.FindString(string(body))]++
	}
	return rec.Code, rec.Body.Bytes()
}

// list edits each entry of a list by the lie of its batch.
func (l *liar) list(x *exchange) {
	status, body := x.real()
	var page map[string]any
	_ = json.Unmarshal(body, &page)
	entries, _ := page["data"].([]any)
	for i, e := range entries {
		entry, _ := json.Marshal(e)
		l.mu.Lock()
		owner := l.owner[e.(map[string]any)["id"].(string)]
		l.mu.Unlock()
		if tale := l.lies[owner].at[onList]; tale != nil {
			rec := httptest.NewRecorder()
			tale(&exchange{ResponseWriter: rec, real: func() (int, []byte) { return 200, entry }}, l.tell(owner, onList))
			entries[i] = json.RawMessage(rec.Body.Bytes())
		}
	}
	body, _ = json.Marshal(page)
	x.say(status, string(body))
}

// jobsPerLie is the number of jobs of each lie; make rewritechaos runs more.
func jobsPerLie() int {
	if os.Getenv("CHAOS_RUNS") != "" {
		return 60
	}
	return 7
}

// Two workers and a provider that lies about each request: no job is lost, stuck, or given
// another's rewrite, and none is paid again whose result the provider has.
func TestLyingProvider(t *testing.T) {
	t.Parallel()
	r, l := newRig(t), newLiar(lies())
	r.lying = newClient(t, r.pipeline, l)
	r.cfg.Run.MaxJobsPerRun, r.cfg.Run.MaxRuntimeSeconds, r.cfg.Run.ClaimTimeoutSeconds = rewrite.MaxJobsPerRun, 3600, 7200
	ids := make([][]string, len(l.lies))
	for i := range l.lies {
		ids[i] = r.enqueueMarked(t, l.lies[i], i)
	}
	open := func() int {
		return r.number(t, `select count(*) from complaint_rewrite.jobs where status not in ('completed', 'failed')`)
	}
	for round := 0; open() > 0 && round < 60; round++ {
		r.runTwice(t)
		r.later(t)
		r.edit(t, `update complaint_rewrite.batches set submitted_at = submitted_at - interval '2 hours', created_at = created_at - interval '2 hours',
			final_at = final_at - interval '2 hours', ended_at = ended_at - interval '2 hours'`)
		r.edit(t, `update complaint_rewrite.jobs set capacity_rounds = capacity_rounds + 80 where capacity_rounds < 80`) // of rewrite.MaxRounds
	}
	for i, lie := range l.lies {
		t.Run(lie.name, func(t *testing.T) { r.checkLie(t, l, i, ids[i]) })
	}
}

// markOf is a part of the message of one job.
func markOf(lie, job int) string { return fmt.Sprintf("(mark %d)", lie*10_000+job) }

// enqueueMarked creates the jobs of one lie.
func (r *rig) enqueueMarked(t *testing.T, of lie, i int) []string {
	t.Helper()
	mode, ids := rewrite.Batch, make([]string, jobsPerLie())
	if of.at[onCall] != nil {
		mode = rewrite.Async
	}
	for j := range ids {
		text := fmt.Sprintf("You never clean the kitchen %s, and I always write to ann@corp.example about it!", markOf(i, j))
		if j == 0 {
			text += " (first)"
		}
		ids[j] = r.enqueueText(t, 1, mode, text, func(o *rewrite.Order) { o.Routing.Model = fmt.Sprintf("lie-%d", i) })[0]
	}
	return ids
}

// runTwice runs two workers of each kind at once.
func (r *rig) runTwice(t *testing.T) {
	t.Helper()
	var running errgroup.Group
	for _, worker := range slices.Concat(rewrite.Workers(), rewrite.Workers()) {
		running.Go(func() error {
			_, err := r.run(t, worker, uuid.NewString())
			return err
		})
	}
	testkit.NoError(t, running.Wait())
}

func (r *rig) checkLie(t *testing.T, l *liar, i int, ids []string) {
	t.Helper()
	of, failed, paid := l.lies[i], 0, l.sim.Rewrites()
	for j, id := range ids {
		job := r.job(t, id)
		switch job.Status {
		case rewrite.Completed:
			var ref string
			testkit.NoError(t, r.scan(`select result_ref from complaint_rewrite.jobs where job_id = '`+id+`'`, &ref))
			text := r.stored(t, ref)
			if !strings.Contains(text, markOf(i, j)) || !strings.Contains(text, "ann@corp.example") {
				t.Errorf("the result of job %d, %s, is %q", j, markOf(i, j), text)
			}
		case rewrite.Failed:
			failed++
		default:
			t.Errorf("job %d is stuck: %s after %d attempts, %s", j, job.Status, job.AttemptCount, lastError(job))
		}
		if n := max(paid[id], l.calls[markOf(i, j)]); n > max(1, of.paid) {
			t.Errorf("job %d was paid %d times", j, n)
		}
	}
	if want := min(of.lost, len(ids)); failed != want {
		t.Errorf("%d jobs failed, want %d", failed, want)
	}
	for request := range of.at {
		if l.told[fmt.Sprint(i, request)] == 0 {
			t.Errorf("no %s was lied about", request)
		}
	}
}

// The requests about which a provider lies.
const (
	onUpload  = "upload"
	onFile    = "file" // its status
	onCreate  = "create"
	onList    = "list" // about one entry
	onPoll    = "poll"
	onContent = "content" // of the output file
	onCall    = "call"    // of the async lane
)

// A lie is one behaviour of a provider toward the jobs of one model.
type lie struct {
	name string
	at   map[string]tale // by request
	paid int             // how often a job may be executed; 1 if 0
	lost int             // how many jobs fail
}

// A tale replies to a request, n from 1.
type tale func(x *exchange, n int)

// An exchange is a request that a tale replies to.
type exchange struct {
	http.ResponseWriter
	batch string                           // its ID; empty if it does not exist yet
	body  []byte                           // of the request, or the input file of a creation
	real  func() (status int, body []byte) // executes the request
}

func (x *exchange) say(status int, body string) {
	x.WriteHeader(status)
	_, _ = io.WriteString(x, body)
}

func (x *exchange) pass() {
	status, body := x.real()
	x.say(status, string(body))
}

func on(request string, t tale) map[string]tale { return map[string]tale{request: t} }

const always = 1 << 30

// times applies t to the first n requests and passes the others on.
func times(n int, t tale) tale {
	return func(x *exchange, i int) {
		if i > n {
			x.pass()
			return
		}
		t(x, i)
	}
}

// refuse replies without executing the request; after executes it first, lose executes it
// and closes the connection.
func refuse(n, status int, body string) tale {
	return times(n, func(x *exchange, _ int) { x.say(status, body) })
}

func after(n, status int, body string) tale {
	return times(n, func(x *exchange, _ int) { x.real(); x.say(status, body) })
}

func lose(n int) tale {
	return times(n, func(x *exchange, _ int) { x.real(); panic(http.ErrAbortHandler) })
}

// change changes the reply, each its lines, top its first line, and set its fields.
func change(n int, f func(string) string) tale {
	return times(n, func(x *exchange, _ int) {
		status, body := x.real()
		x.say(status, f(string(body)))
	})
}

func each(n int, f func([]string) []string) tale {
	return change(n, func(s string) string {
		return strings.Join(f(strings.Split(strings.TrimSuffix(s, "\n"), "\n")), "\n") + "\n"
	})
}

func top(n int, f func(string) string) tale {
	return each(n, func(all []string) []string { return append([]string{f(all[0])}, all[1:]...) })
}

func set(n int, fields map[string]any) tale {
	return change(n, func(s string) string {
		object := map[string]any{}
		_ = json.Unmarshal([]byte(s), &object)
		maps.Copy(object, fields)
		body, _ := json.Marshal(object)
		return string(body)
	})
}

// failed replies that a batch failed, and why, without polling it.
func failed(n int, code string, line int) tale {
	return times(n, func(x *exchange, _ int) {
		problems := []any{}
		if code != "" {
			problems = append(problems, map[string]any{"code": code, "line": line})
		}
		body, _ := json.Marshal(map[string]any{"id": x.batch, "status": "failed", "errors": map[string]any{"data": problems}})
		x.say(200, string(body))
	})
}

// culprit refuses requests whose batch has the first job.
func culprit(status int) tale {
	return func(x *exchange, _ int) {
		if bytes.Contains(x.body, []byte("(first)")) {
			x.say(status, html)
			return
		}
		x.pass()
	}
}

const html = "<html><body>Service page</body></html>"

func zip(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

func zipped(x *exchange, _ int) {
	status, body := x.real()
	x.Header().Set("Content-Encoding", "gzip")
	x.say(status, zip(string(body)))
}

func slowly(x *exchange, _ int) {
	_, body := x.real()
	for part := range slices.Chunk(body, len(body)/10+1) {
		_, _ = x.Write(part)
		_ = http.NewResponseController(x.ResponseWriter).Flush()
		time.Sleep(20 * time.Millisecond) // the behaviour itself; nothing is awaited
	}
}

func swap(from, to string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, from, to) }
}

func half(s string) string { return s[:len(s)/2] }

var (
	customID = regexp.MustCompile(`"custom_id":"([^"]*)"`)
	answered = regexp.MustCompile(`"text":"(?:[^"\\]|\\.)*"`)
)

// renamed gives a line to a job that does not exist.
func renamed(line string) string {
	return customID.ReplaceAllString(line, `"custom_id":"`+uuid.NewString()+`"`)
}

func counts(total, completed int) map[string]any {
	return map[string]any{"request_counts": map[string]any{"total": total, "completed": completed, "failed": 0}}
}

func lies() []lie {
	return slices.Concat([]lie{{name: "none"}}, submissionLies(), pollLies(), fileLies(), callLies(), refusalsInWords())
}

func submissionLies() []lie {
	return []lie{
		{name: "upload: rate limit", at: on(onUpload, refuse(3, 429, html))},
		{name: "upload: key refused once", at: on(onUpload, refuse(1, 401, html))},
		{name: "upload: internal error once", at: on(onUpload, refuse(1, 500, html))},
		{name: "upload: executed, then an error", at: on(onUpload, after(1, 502, html))},
		{name: "upload: a page", at: on(onUpload, after(1, 200, html))},
		{name: "upload: no ID", at: on(onUpload, after(1, 200, "{}"))},
		{name: "upload: reply lost", at: on(onUpload, lose(1))},
		{name: "upload: one job refused", at: on(onUpload, culprit(400)), lost: 1},
		{name: "upload: all refused for a while", at: on(onUpload, refuse(9, 400, html))},
		{name: "upload: unavailable for a while", at: on(onUpload, refuse(5, 503, html))},
		{name: "upload: too large", at: on(onUpload, whenMany(413, html))},
		{name: "create: rate limit", at: on(onCreate, refuse(3, 429, html))},
		{name: "create: not found once", at: on(onCreate, refuse(1, 404, html))},
		{name: "create: unavailable once", at: on(onCreate, refuse(1, 503, html))},
		{name: "create: refused for a while", at: on(onCreate, refuse(12, 400, html))},
		{name: "create: file not processed yet", at: on(onCreate, refuse(3, 400, `{"error":{"message":"The file is not in the processed state."}}`))},
		{name: "create: key refused", at: on(onCreate, refuse(3, 401, html))},
		{name: "create: no such model", at: on(onCreate, refuse(3, 404, `{"error":{"code":"model_not_found"}}`))},
		{name: "create: too many lines", at: on(onCreate, whenMany(413, html))},
		{name: "create: too much enqueued", at: on(onCreate, whenMany(400, `{"error":{"code":"enqueued_token_limit"}}`))},
		{name: "create: reply lost", at: on(onCreate, lose(1))},
		{name: "create: executed, then an error", at: on(onCreate, after(1, 500, html))},
		{name: "create: a page", at: on(onCreate, after(1, 200, html))},
		{name: "create: no ID", at: on(onCreate, after(1, 200, "{}"))},
		{name: "create: half a reply", at: on(onCreate, change(1, half))},
		{name: "create: another batch", at: on(onCreate, set(1, map[string]any{"id": "batch_x", "input_file_id": "file-x"}))},
		{name: "create: reply lost, metadata too", at: map[string]tale{onCreate: lose(1), onList: set(always, map[string]any{"metadata": nil})}},
		{name: "create: reply lost, no ID in the list at first", at: map[string]tale{onCreate: lose(1), onList: set(2, map[string]any{"id": nil})}},
	}
}

func pollLies() []lie {
	return []lie{
		{name: "poll: not found once", at: on(onPoll, refuse(1, 404, html))},
		{name: "poll: never found", at: on(onPoll, refuse(always, 404, html)), paid: 2, lost: always},
		{name: "poll: key refused", at: on(onPoll, refuse(3, 401, html))},
		{name: "poll: internal error", at: on(onPoll, refuse(3, 500, html))},
		{name: "poll: a page", at: on(onPoll, refuse(2, 200, html))},
		{name: "poll: half a reply", at: on(onPoll, change(2, half))},
		{name: "poll: empty reply", at: on(onPoll, after(2, 200, ""))},
		{name: "poll: another batch, expired", at: on(onPoll, set(2, map[string]any{"id": "batch_x", "status": "expired", "output_file_id": nil, "request_counts": nil}))},
		{name: "poll: in progress after the end", at: on(onPoll, func(x *exchange, n int) {
			if n%2 == 0 {
				set(always, map[string]any{"status": "in_progress"})(x, n)
				return
			}
			set(2, map[string]any{"output_file_id": "file-x"})(x, n)
		})},
		{name: "poll: unknown status", at: on(onPoll, set(2, map[string]any{"status": "pondering"}))},
		{name: "poll: completed before the files", at: on(onPoll, set(2, map[string]any{"output_file_id": nil}))},
		{name: "poll: completed, no files, no counts", at: on(onPoll, set(2, map[string]any{"output_file_id": "", "request_counts": nil}))},
		{name: "poll: counts too high", at: on(onPoll, set(always, counts(1000, 1000)))},
		{name: "poll: counts too low", at: on(onPoll, set(always, counts(1, 0)))},
		{name: "poll: negative counts", at: on(onPoll, set(always, counts(-1, -7)))},
		{name: "poll: expired with all results", at: on(onPoll, set(always, map[string]any{"status": "expired"}))},
		{name: "poll: canceled with all results", at: on(onPoll, set(always, map[string]any{"status": "cancelled"}))},
		{name: "poll: failed without a reason", at: on(onPoll, failed(1, "", 0)), paid: 2},
		{name: "poll: failed, no room", at: on(onPoll, failed(1, "token_limit_exceeded", 0)), paid: 2},
		{name: "poll: failed, no such model", at: on(onPoll, failed(2, "model_not_found", 1)), paid: 3},
		{name: "poll: failed, too many requests are enqueued", at: on(onPoll, failed(2, "enqueued_request_limit_exceeded", 0)), paid: 3},
		{name: "poll: failed for a line", at: on(onPoll, failed(1, "invalid_json_line", 2)), paid: 2, lost: 1},
		{name: "poll: failed for no line of the file", at: on(onPoll, failed(1, "you never clean", 999_999)), paid: 2},
	}
}

func fileLies() []lie {
	return []lie{
		{name: "file: not found once", at: on(onContent, refuse(1, 404, html))},
		{name: "file: deleted early", at: on(onContent, refuse(always, 404, html)), paid: 2, lost: always},
		{name: "file: key refused", at: on(onContent, refuse(2, 401, html))},
		{name: "file: internal error", at: on(onContent, refuse(2, 500, html))},
		{name: "file: a page", at: on(onContent, refuse(2, 200, html))},
		{name: "file: empty", at: on(onContent, after(2, 200, ""))},
		{name: "file: half", at: on(onContent, change(2, half))},
		{name: "file: connection ends", at: on(onContent, times(2, func(x *exchange, _ int) {
			status, body := x.real()
			x.Header().Set("Content-Length", strconv.Itoa(len(body)))
			x.say(status, half(string(body)))
		}))},
		{name: "file: compressed", at: on(onContent, change(always, zip))},
		{name: "file: half of the compressed file", at: on(onContent, change(2, func(s string) string { return half(zip(s)) }))},
		{name: "file: compressed with its header", at: on(onContent, zipped)},
		{name: "file: slow", at: on(onContent, slowly)},
		{name: "file: byte order mark", at: on(onContent, change(always, func(s string) string { return "\ufeff" + s }))},
		{name: "file: other line ends", at: on(onContent, change(always, swap("\n", "\r\n\r\n")))},
		{name: "file: other order", at: on(onContent, each(always, func(l []string) []string { slices.Sort(l); return l }))},
		{name: "file: every line twice", at: on(onContent, each(always, func(l []string) []string { return append(l, l...) }))},
		{name: "file: lines of others", at: on(onContent, each(always, func(l []string) []string {
			return append(l, renamed(l[0]), `{"custom_id":7}`, "[]", "null")
		}))},
		{name: "file: a line is missing at first", at: on(onContent, each(2, func(l []string) []string { return l[1:] }))},
		{name: "file: a line stays missing", at: on(onContent, each(always, func(l []string) []string { return l[1:] })), paid: 2, lost: 1},
		{name: "file: two results of a job", at: on(onContent, each(1, func(l []string) []string {
			return append(l, answered.ReplaceAllString(l[0], `"text":"{\"rewrite\":\"On another day.\"}"`),
				strings.ReplaceAll(l[0], "kitchen", "kitchen and the hall"))
		})), paid: 2},
		{name: "file: an error before the result", at: on(onContent, each(always, func(l []string) []string {
			return append([]string{`{` + customID.FindString(l[0]) + `,"response":null,"error":{"code":"server_error"}}`}, l...)
		}))},
		{name: "file: result and error in a line", at: on(onContent, change(always, swap(`"error":null,"id":"batch_req`, `"error":{"code":"x"},"id":"batch_req`)))},
		{name: "file: the ID of a job is another's", at: on(onContent, top(2, renamed))},
		{name: "file: IDs in capitals", at: on(onContent, change(2, func(s string) string {
			return customID.ReplaceAllStringFunc(s, func(id string) string { return `"custom_id":` + strings.ToUpper(id[len(`"custom_id":`):]) })
		}))},
		{name: "file: huge line", at: on(onContent, each(always, func(l []string) []string { return append(l, strings.Repeat("x", 5<<20), l[0]) }))},
		{name: "file: status as a text", at: on(onContent, change(2, swap(`"status_code":200`, `"status_code":"200"`)))},
		{name: "file: one array", at: on(onContent, change(2, func(s string) string {
			return "[" + strings.ReplaceAll(strings.TrimSpace(s), "\n", ",") + "]"
		}))},
		{name: "file: another model answered", at: on(onContent, change(always, swap(`"model":"lie`, `"model":"cheaper`)))},
		{name: "file: no answer in a line", at: on(onContent, top(1, func(s string) string { return answered.ReplaceAllString(s, `"text":""`) })), paid: 2},
		{name: "file: a placeholder is made up", at: on(onContent, top(1, swap("REDACTED:email", "REDACTED:phone"))), paid: 2},
		{name: "file: a request was not executed", at: on(onContent, top(1, swap(`"status_code":200`, `"status_code":0`))), paid: 2},
		{name: "file: rate limit in a line", at: on(onContent, top(1, swap(`"status_code":200`, `"status_code":429`))), paid: 2},
	}
}

func callLies() []lie {
	return []lie{
		{name: "call: key refused once", at: on(onCall, refuse(1, 401, html))},
		{name: "call: refused for a while", at: on(onCall, refuse(6, 400, html))},
		{name: "call: no such model for a while", at: on(onCall, refuse(6, 404, html))},
		{name: "call: no credit for a while", at: on(onCall, refuse(6, 402, html))},
		{name: "call: rate limit for a while", at: on(onCall, refuse(12, 429, html))},
		{name: "call: rate limit once", at: on(onCall, refuse(1, 429, html))},
		{name: "call: a page", at: on(onCall, refuse(1, 200, html))},
		{name: "call: no answer", at: on(onCall, after(1, 200, `{"status":"completed","output":[]}`)), paid: 2},
		{name: "call: half an answer", at: on(onCall, change(1, half)), paid: 2},
		{name: "call: reply lost", at: on(onCall, lose(1)), paid: 2},
		{name: "call: another model answered", at: on(onCall, change(always, swap(`"model":"lie`, `"model":"cheaper`)))},
		{name: "call: slow", at: on(onCall, slowly)},
		{name: "call: compressed", at: on(onCall, zipped)},
	}
}

// problem is the body of an error.
func problem(code, message string) string {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"code": code, "message": message}})
	return string(body)
}

// whenMany refuses requests about more than three jobs.
func whenMany(status int, body string) tale { return whenMore(3, status, body) }

func whenMore(most, status int, body string) tale {
	return func(x *exchange, _ int) {
		if bytes.Count(x.body, []byte("custom_id")) > most {
			x.say(status, body)
			return
		}
		x.pass()
	}
}

// rejected replies that a batch failed, with errors of any form.
func rejected(n int, errors string) tale {
	return times(n, func(x *exchange, _ int) { x.say(200, `{"id":"`+x.batch+`","status":"failed","errors":`+errors+`}`) })
}

func utf16(s string) string {
	return "\xff\xfe" + strings.Join(strings.Split(s, ""), "\x00") + "\x00"
}

// What gateways and other servers than OpenAI's were reported to do.
func refusalsInWords() []lie {
	const budget = `{"error":{"message":"ExceededBudget: User=x over budget. Spend=10.0, Budget=10.0","type":"budget_exceeded","param":null,"code":"400"}}`
	const region = `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}`
	const key = `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: x***y"}`
	return []lie{
		{name: "upload: over budget", at: on(onUpload, refuse(6, 400, budget))},
		{name: "upload: wrong region", at: on(onUpload, refuse(5, 403, region))},
		{name: "upload: refused key as 400", at: on(onUpload, refuse(5, 400, key))},
		{name: "upload: no credit", at: on(onUpload, refuse(4, 402, html))},
		{name: "upload: an error with status 200", at: on(onUpload, refuse(2, 200, problem("server_error", "oops")))},
		{name: "upload: one file too large", at: on(onUpload, whenMany(400, problem("file_too_large", "The file is too large")))},
		{name: "upload: only one job fits", at: on(onUpload, whenMore(1, 413, html))},
		{name: "upload: one job is unprocessable", at: on(onUpload, culprit(422)), lost: 1},
		{name: "upload: redirected", at: on(onUpload, refuse(2, 307, html))},
		{name: "file status: pending", at: on(onFile, set(4, map[string]any{"status": "pending"}))},
		{name: "file status: a page", at: on(onFile, refuse(always, 200, html))},
		{name: "file status: not found", at: on(onFile, refuse(always, 404, html))},
		{name: "file status: not found, creation too early", at: map[string]tale{onFile: refuse(always, 404, html), onCreate: refuse(3, 404, problem("", "Input file not found"))}},

		{name: "create: over budget", at: on(onCreate, refuse(6, 400, budget))},
		{name: "create: wrong region", at: on(onCreate, refuse(5, 400, region))},
		{name: "create: conflict", at: on(onCreate, refuse(2, 409, html))},
		{name: "create: executed, then a conflict", at: on(onCreate, after(1, 409, html))},
		{name: "create: executed, then not found", at: on(onCreate, after(1, 404, html))},
		{name: "create: executed, then too early", at: on(onCreate, after(1, 400, problem("", "The file is not processed yet")))},
		{name: "create: executed, then a rate limit", at: on(onCreate, after(1, 429, html))},
		{name: "create: executed, then a timeout", at: on(onCreate, after(1, 408, html))},
		{name: "create: executed, then a refused key", at: on(onCreate, after(1, 401, html))},
		{name: "create: unprocessable", at: on(onCreate, refuse(8, 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`))},
		{name: "create: no credit with status 200", at: on(onCreate, refuse(2, 200, problem("insufficient_quota", "You exceeded your current quota")))},
		{name: "create: too many batches", at: on(onCreate, refuse(4, 400, problem("batch_limit_exceeded", "Too many batches")))},
		{name: "create: too many lines by code", at: on(onCreate, whenMany(400, problem("too_many_lines", "The file has too many lines")))},
		{name: "create: too much enqueued, in words", at: on(onCreate, whenMany(400, problem("", "Enqueued token limit reached for m. Limit: 90,000 enqueued tokens")))},
		{name: "create: another input file in the reply", at: on(onCreate, set(1, map[string]any{"input_file_id": "file-x"}))},
		{name: "create: status 201", at: on(onCreate, func(x *exchange, _ int) { _, body := x.real(); x.say(201, string(body)) })},
		{name: "create: no metadata in the reply", at: on(onCreate, set(always, map[string]any{"metadata": nil, "request_counts": []int{1}}))},

		{name: "poll: an error with status 200", at: on(onPoll, refuse(3, 200, problem("server_error", "oops")))},
		{name: "poll: status in capitals", at: on(onPoll, change(always, swap(`"status":"completed"`, `"status":"COMPLETED"`)))},
		{name: "poll: succeeded", at: on(onPoll, change(always, swap(`"status":"completed"`, `"status":"succeeded"`)))},
		{name: "poll: canceled with one l", at: on(onPoll, change(always, swap(`"status":"completed"`, `"status":"canceled"`)))},
		{name: "poll: expired before the files", at: on(onPoll, set(2, map[string]any{"status": "expired", "output_file_id": nil}))},
		{name: "poll: finalizing for ever", at: on(onPoll, set(always, map[string]any{"status": "finalizing"}))},
		{name: "poll: failed, errors are a text", at: on(onPoll, rejected(1, `"Enqueued token limit reached for m"`)), paid: 2},
		{name: "poll: failed, the reason in words", at: on(onPoll, rejected(1, `{"data":[{"code":null,"message":"Enqueued token limit reached for m"}]}`)), paid: 2},
		{name: "poll: failed, errors are null", at: on(onPoll, rejected(1, `{"data":null}`)), paid: 2},
		{name: "poll: failed, every line is refused", at: on(onPoll, rejected(1, `{"data":[`+strings.TrimSuffix(lines(1, jobsPerLie()), ",")+`]}`)), paid: 2},
		{name: "poll: failed, billing", at: on(onPoll, rejected(2, `{"data":[{"code":"billing_hard_limit_reached"}]}`)), paid: 3},
		{name: "poll: failed, organization disabled", at: on(onPoll, rejected(2, `{"data":[{"code":"organization_disabled","line":1}]}`)), paid: 3},

		{name: "file: text after the object", at: on(onContent, each(2, func(l []string) []string { l[0] += " # end"; return l }))},
		{name: "file: a NUL in a rewrite", at: on(onContent, top(1, swap("kitchen", "kitchen\\\\u0000"))), paid: 2},
		{name: "file: an error after the result", at: on(onContent, each(always, func(l []string) []string {
			return append(l, `{`+customID.FindString(l[0])+`,"response":null,"error":{"code":"server_error"}}`)
		}))},
		{name: "file: UTF-16", at: on(onContent, change(2, utf16))},
		{name: "file: blanks around IDs", at: on(onContent, change(2, swap(`"custom_id":"`, `"custom_id":" `)))},
		{name: "file: no status in a line", at: on(onContent, change(always, swap(`"status_code":200`, `"x":1`)))},
		{name: "file: empty errors", at: on(onContent, change(always, swap(`"error":null`, `"error":{}`)))},
		{name: "file: errors are false", at: on(onContent, change(always, swap(`"error":null`, `"error":false`)))},
		{name: "file: a comment first", at: on(onContent, each(always, func(l []string) []string { return append([]string{"# results"}, l...) }))},
		{name: "file: compressed in two parts", at: on(onContent, change(always, func(s string) string { return zip(half(s)) + zip(s[len(s)/2:]) }))},
		{name: "file: status 206", at: on(onContent, func(x *exchange, _ int) { _, body := x.real(); x.say(206, string(body)) })},
		{name: "file: redirected", at: on(onContent, refuse(2, 302, html))},

		{name: "call: over budget", at: on(onCall, refuse(6, 400, budget))},
		{name: "call: wrong region", at: on(onCall, refuse(6, 400, region))},
		{name: "call: refused key as 400", at: on(onCall, refuse(6, 400, key))},
		{name: "call: no credit with status 200", at: on(onCall, refuse(4, 200, `{"status":"failed","output":[],"error":{"code":"insufficient_quota"}}`))},
		{name: "call: refused key in words with status 200", at: on(onCall, refuse(4, 200, `{"error":"Incorrect API key provided"}`))},
		{name: "call: overloaded", at: on(onCall, refuse(1, 529, html))},
		{name: "call: unsupported parameter", at: on(onCall, refuse(6, 400, problem("unsupported_parameter", "Unsupported parameter: 'text.format'")))},
		{name: "call: an unknown refusal", at: on(onCall, refuse(6, 451, html))},
		{name: "call: redirected", at: on(onCall, refuse(2, 308, html))},
		{name: "call: one job is refused", at: on(onCall, culprit(400)), lost: 1},
		{name: "call: one job is unprocessable", at: on(onCall, culprit(422)), lost: 1},
		{name: "call: empty", at: on(onCall, refuse(1, 200, ""))},
		{name: "call: connection ends first", at: on(onCall, times(2, func(*exchange, int) { panic(http.ErrAbortHandler) }))},
	}
}

// lines returns problems with the lines from one to another.
func lines(from, to int) string {
	var all strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&all, `{"code":"invalid_json_line","line":%d},`, n)
	}
	return all.String()
}
