package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/rewrite"
	"github.com/criticizer/criticizer/rewrite/provider"
)

// items returns n complaints; each message contains its number.
func items(t *testing.T, n int) []rewrite.Item {
	t.Helper()
	all := make([]rewrite.Item, n)
	for i := range all {
		all[i] = complaint(t, fmt.Sprintf("job-%d", i))
		all[i].Text = text(t, fmt.Sprintf("You never clean the kitchen, as on day <%d> of this month! %s", i, canary))
	}
	return all
}

// submit uploads and creates a batch.
func submit(t *testing.T, r *provider.Rewriter, decision rewrite.RoutingDecision, all []rewrite.Item, key string) rewrite.ProviderBatch {
	t.Helper()
	file, err := r.Upload(t.Context(), decision, all)
	testkit.NoError(t, err)
	b, err := r.Create(t.Context(), decision, file, key)
	testkit.NoError(t, err)
	return b
}

// results returns all lines of a batch's files, by item.
func results(t *testing.T, r *provider.Rewriter, decision rewrite.RoutingDecision, b rewrite.ProviderBatch) map[string][]rewrite.Line {
	t.Helper()
	lines := map[string][]rewrite.Line{}
	for _, file := range []string{b.OutputFileID, b.ErrorFileID} {
		if file == "" {
			continue
		}
		err := r.Results(t.Context(), decision, file, func(l rewrite.Line) error {
			if l.JobID != "" {
				lines[l.JobID] = append(lines[l.JobID], l)
			}
			return nil
		})
		testkit.NoError(t, err)
	}
	return lines
}

func batchKinds() []rewrite.AdapterKind {
	return []rewrite.AdapterKind{rewrite.OpenAIChat, rewrite.OpenAIResponses}
}

func TestBatchFromUploadToResults(t *testing.T) {
	t.Parallel()
	for _, kind := range batchKinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			sim := llmsim.New(llmsim.Config{APIKey: secret.New(apiKey), BatchPolls: 1})
			r, logs := newRewriter(t, sim)
			all := items(t, 5)
			b := submit(t, r, to(kind), all, "key-1")
			if b.Status != rewrite.BatchValidating || time.Since(b.CreatedAt) > time.Minute {
				t.Errorf("a new batch is %+v", b)
			}
			if b = poll(t, r, kind, b.ID); b.Status != rewrite.BatchInProgress || b.Status.Final() {
				t.Errorf("the batch is %+v, want it in progress", b)
			}
			if b = poll(t, r, kind, b.ID); b.Status != rewrite.BatchCompleted || b.ErrorFileID != "" {
				t.Fatalf("the batch is %+v, want it completed", b)
			}
			lines := results(t, r, to(kind), b)
			for _, item := range all { // the simulator answers in reverse order
				l := lines[item.JobID]
				if len(l) != 1 || l[0].Err != nil || r.Check(item, l[0].Answer) != nil || !strings.Contains(l[0].Answer, "<"+item.JobID[4:]+">") {
					t.Errorf("lines of %s are %+v", item.JobID, l)
				}
			}
			mustNotShow(t, "log", logs.String())
		})
	}
}

func poll(t *testing.T, r *provider.Rewriter, kind rewrite.AdapterKind, id string) rewrite.ProviderBatch {
	t.Helper()
	b, err := r.Poll(t.Context(), to(kind), id)
	testkit.NoError(t, err)
	return b
}

// Faults of batches that were observed at providers.
func TestFaultsOfBatches(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault    llmsim.Fault
		status   rewrite.BatchStatus
		answered int           // items with an answer
		class    failure.Class // of all others that have a line
		lines    int           // of all items
	}{
		"expired with half of its results":   {on("expire"), rewrite.BatchExpired, 3, failure.UpstreamUnavailable, 6},
		"cancelled with half of its results": {on("cancel_halfway"), rewrite.BatchCancelled, 3, failure.UpstreamUnavailable, 6},
		"lines are missing":                  {on("missing_lines"), rewrite.BatchCompleted, 4, "", 4},
		"every line twice":                   {on("doubled_lines"), rewrite.BatchCompleted, 6, "", 12},
		"unreadable lines":                   {on("broken_lines"), rewrite.BatchCompleted, 6, "", 6},
		"no files, and null ids":             {on("no_files"), rewrite.BatchCompleted, 0, "", 0},
		"no error file, with an empty id":    {on("empty_file_ids"), rewrite.BatchCompleted, 6, "", 6},
		"lines with status 0":                {on("not_carried_out"), rewrite.BatchCompleted, 0, failure.UpstreamInternal, 6},
		"only an error file":                 {llmsim.Fault{Kind: llmsim.RateLimit}, rewrite.BatchCompleted, 0, failure.RateLimited, 6},
		"one line is over the rate limit":    {llmsim.Fault{Kind: llmsim.RateLimit, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.RateLimited, 6},
		"one line is refused as content":     {llmsim.Fault{Kind: llmsim.ContentPolicy, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.ContentPolicy, 6},
		"the model refuses one line":         {llmsim.Fault{Kind: llmsim.Refusal, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.ContentPolicy, 6},
		"one answer is cut off":              {llmsim.Fault{Kind: llmsim.Length, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.TooLarge, 6},
		"one line fails in HTML":             {llmsim.Fault{Kind: llmsim.BadGateway, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.UpstreamUnavailable, 6},
		"one line fails inside":              {llmsim.Fault{Kind: llmsim.Internal, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.UpstreamInternal, 6},
		"the body of one line is cut":        {llmsim.Fault{Kind: llmsim.CutBody, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.UpstreamInternal, 6},
		"one answer has another shape":       {llmsim.Fault{Kind: llmsim.BadSchema, Match: "<3>"}, rewrite.BatchCompleted, 5, failure.SchemaInvalid, 6},
	} {
		for _, kind := range batchKinds() {
			t.Run(name+" of "+string(kind), func(t *testing.T) {
				t.Parallel()
				sim := newSim()
				sim.Inject(tt.fault)
				r, logs := newRewriter(t, sim)
				b := poll(t, r, kind, submit(t, r, to(kind), items(t, 6), "key").ID)
				if b.Status != tt.status {
					t.Fatalf("status is %s, want %s", b.Status, tt.status)
				}
				answered, total := 0, 0
				for _, lines := range results(t, r, to(kind), b) {
					total += len(lines)
					if lines[0].Err == nil {
						answered++
					} else if class := failure.ClassOf(lines[0].Err); class != tt.class {
						t.Errorf("error is %v of class %s, want %s", lines[0].Err, class, tt.class)
					} else {
						mustNotShow(t, "error", lines[0].Err.Error())
					}
				}
				if answered != tt.answered || total != tt.lines {
					t.Errorf("%d items answered in %d lines, want %d in %d", answered, total, tt.answered, tt.lines)
				}
				mustNotShow(t, "log", logs.String())
			})
		}
	}
}

func on(kind llmsim.FaultKind) llmsim.Fault { return llmsim.Fault{Kind: kind, On: llmsim.Batch} }

// The list has a batch whose creation had no response, behind pages of other batches, and ends at since.
func TestBatchesArePaged(t *testing.T) {
	t.Parallel()
	sim := newSim()
	r, _ := newRewriter(t, sim)
	decision, begun := to(rewrite.OpenAIResponses), time.Now().Add(-time.Minute)
	file, err := r.Upload(t.Context(), decision, items(t, 1))
	testkit.NoError(t, err)
	sim.Inject(llmsim.Fault{Kind: llmsim.LostAnswer, On: llmsim.Create, Times: 1})
	if _, err := r.Create(t.Context(), decision, file, "key-lost"); failure.ClassOf(err) != failure.NetworkUnreachable {
		t.Fatalf("got %v, want a lost connection", err)
	}
	for i := range 250 {
		if _, err := r.Create(t.Context(), decision, file, fmt.Sprintf("key-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.Batches(t.Context(), decision, begun)
	if err != nil || len(all) != 251 {
		t.Fatalf("%d batches, %v", len(all), err)
	}
	if b := all[250]; b.Key != "key-lost" || b.InputFileID != file || b.ID != "batch_000002" {
		t.Errorf("the oldest batch is %+v", b)
	}
	if page, err := r.Batches(t.Context(), decision, time.Now().Add(2*time.Hour)); err != nil || len(page) != 100 {
		t.Errorf("%d batches of the first page, %v", len(page), err)
	}
}

// Every operation on files and batches returns the class of its fault; an operation that
// changes something is sent once.
func TestOperationsFailWithTheirClass(t *testing.T) {
	t.Parallel()
	for kind, want := range map[llmsim.FaultKind]failure.Class{
		llmsim.RateLimit:  failure.RateLimited,
		llmsim.InvalidKey: failure.AuthDenied,
		llmsim.Internal:   failure.UpstreamInternal,
		llmsim.BadGateway: failure.UpstreamUnavailable,
		llmsim.Drop:       failure.NetworkUnreachable,
		llmsim.LostAnswer: failure.NetworkUnreachable,
		llmsim.Forgotten:  failure.NotFound,
	} {
		for _, op := range []llmsim.Operation{llmsim.Upload, llmsim.Create, llmsim.Retrieve, llmsim.List, llmsim.Cancel, llmsim.Content} {
			t.Run(fmt.Sprintf("%s of %s", kind, op), func(t *testing.T) {
				t.Parallel()
				sim := newSim()
				sim.Inject(llmsim.Fault{Kind: kind, On: op, RetryAfter: "7"})
				r, _ := newRewriter(t, sim)
				err := operate(t, r, op)
				if failure.ClassOf(err) != want {
					t.Fatalf("got %v of class %s, want %s", err, failure.ClassOf(err), want)
				}
				mustNotShow(t, "error", err.Error())
				// Go's transport retries a GET whose connection was closed.
				if n := sim.Stats().ByFault[kind]; n != 1 && slices.Contains([]llmsim.Operation{llmsim.Upload, llmsim.Create, llmsim.Cancel}, op) {
					t.Errorf("sent %d times, want once", n)
				}
			})
		}
	}
}

// operate executes op and returns its error; the operations before it succeed.
func operate(t *testing.T, r *provider.Rewriter, op llmsim.Operation) error {
	t.Helper()
	decision := to(rewrite.OpenAIChat)
	file, err := r.Upload(t.Context(), decision, items(t, 1))
	if op == llmsim.Upload {
		return err
	}
	b, err := r.Create(t.Context(), decision, file, "key")
	switch op {
	case llmsim.Create:
		return err
	case llmsim.Retrieve:
		_, err = r.Poll(t.Context(), decision, b.ID)
	case llmsim.List:
		_, err = r.Batches(t.Context(), decision, time.Now())
	case llmsim.Cancel:
		err = r.Cancel(t.Context(), decision, b.ID)
	case llmsim.Content:
		err = r.Results(t.Context(), decision, file, func(rewrite.Line) error { return nil })
	}
	return err
}

func TestDeletedFileIsMissing(t *testing.T) {
	t.Parallel()
	r, _ := newRewriter(t, newSim())
	decision := to(rewrite.OpenAIChat)
	file, err := r.Upload(t.Context(), decision, items(t, 1))
	testkit.NoError(t, err)
	for range 2 {
		if err := r.Delete(t.Context(), decision, file); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	err = r.Results(t.Context(), decision, file, func(rewrite.Line) error { return nil })
	if failure.ClassOf(err) != failure.NotFound {
		t.Errorf("got %v, want class %s", err, failure.NotFound)
	}
}

func TestAdapterWithoutBatches(t *testing.T) {
	t.Parallel()
	r, _ := newRewriter(t, newSim())
	google := decisions()["gemini_generate"]
	if _, err := r.Weigh(google, complaint(t, "job-1")); failure.ClassOf(err) != failure.AdapterUnsupported {
		t.Errorf("weigh: got %v, want class %s", err, failure.AdapterUnsupported)
	}
	if _, err := r.Upload(t.Context(), google, items(t, 1)); failure.ClassOf(err) != failure.AdapterUnsupported {
		t.Errorf("upload: got %v, want class %s", err, failure.AdapterUnsupported)
	}
}
