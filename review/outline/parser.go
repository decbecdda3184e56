package outline

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

//go:embed grammars/*.wasm.gz
var grammars embed.FS

// Limits of one parse. A page has 64 KiB.
const (
	parseTimeout = 3 * time.Second
	maxPages     = 4096
	maxRecords   = 1 << 20
	// keepPages is the largest memory of an instance that is used again.
	keepPages = 512
)

// A parser parses files. It is safe for concurrent use. A grammar is compiled when the
// first file of its language arrives, or is read from a directory that holds what a process
// compiled before.
type parser struct {
	mu       sync.Mutex
	cacheDir string // empty for none
	runtime  wazero.Runtime
	compiled map[string]wazero.CompiledModule
	idle     map[*language][]*instance
}

// shared is the parser of the process.
var shared = sync.OnceValue(func() *parser {
	dir, err := os.UserCacheDir()
	if err != nil {
		return newParser("")
	}
	return newParser(filepath.Join(dir, "criticizer", "grammars"))
})

func newParser(cacheDir string) *parser {
	return &parser{cacheDir: cacheDir, compiled: map[string]wazero.CompiledModule{}, idle: map[*language][]*instance{}}
}

// An instance is a grammar with memory of its own.
type instance struct {
	module                  api.Module
	buffer, records, parses api.Function
}

func (p *parser) parse(ctx context.Context, l *language, text string) ([]record, error) {
	in, err := p.take(ctx, l)
	if err != nil {
		return nil, err
	}
	records, err := in.parse(ctx, text)
	if err != nil || in.module.Memory().Size()>>16 > keepPages {
		_ = in.module.Close(context.WithoutCancel(ctx))
		return records, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[l] = append(p.idle[l], in)
	return records, nil
}

// take returns an idle instance, or a new one.
func (p *parser) take(ctx context.Context, l *language) (*instance, error) {
	p.mu.Lock()
	if n := len(p.idle[l]); n > 0 {
		in := p.idle[l][n-1]
		p.idle[l] = p.idle[l][:n-1]
		p.mu.Unlock()
		return in, nil
	}
	compiled, err := p.compile(l.grammar) //nolint:contextcheck // the next file of the language needs it, too
	runtime := p.runtime                  // which compile may replace
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx = experimental.WithMemoryAllocator(ctx, allocator)
	module, err := runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithSysNanotime())
	if err != nil {
		return nil, fmt.Errorf("start grammar %s: %w", l.grammar, err)
	}
	in := &instance{module, module.ExportedFunction("buffer"), module.ExportedFunction("records"), module.ExportedFunction("outline")}
	if err = in.write(ctx, l.rules); err == nil {
		_, err = call(ctx, module.ExportedFunction("configure"), uint64(len(l.rules)))
	}
	if err != nil {
		_ = module.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("configure grammar %s for %s: %w", l.grammar, l.name, err)
	}
	return in, nil
}

func (p *parser) compile(grammar string) (wazero.CompiledModule, error) {
	if c := p.compiled[grammar]; c != nil {
		return c, nil
	}
	packed, err := grammars.ReadFile("grammars/" + grammar + ".wasm.gz")
	if err != nil {
		return nil, fmt.Errorf("read grammar %s: %w", grammar, err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack grammar %s: %w", grammar, err)
	}
	code, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, fmt.Errorf("unpack grammar %s: %w", grammar, err)
	}
	ctx := context.Background()
	if p.runtime == nil {
		p.start(ctx)
	}
	compiled, err := p.runtime.CompileModule(ctx, code)
	if err != nil && p.cacheDir != "" { // the directory is full or damaged
		p.cacheDir = ""
		p.start(ctx)
		compiled, err = p.runtime.CompileModule(ctx, code)
	}
	if err != nil {
		return nil, fmt.Errorf("compile grammar %s: %w", grammar, err)
	}
	p.compiled[grammar] = compiled
	return compiled, nil
}

// start makes the runtime, with the cache if its directory can be used.
func (p *parser) start(ctx context.Context) {
	cfg := wazero.NewRuntimeConfig().WithMemoryLimitPages(maxPages)
	if p.cacheDir != "" {
		if cache, err := wazero.NewCompilationCacheWithDir(p.cacheDir); err == nil {
			cfg = cfg.WithCompilationCache(cache)
		}
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	wasi_snapshot_preview1.MustInstantiate(ctx, p.runtime) // a system without files and environment
	p.compiled = map[string]wazero.CompiledModule{}
}

// call calls a function that returns a negative number for an error.
func call(ctx context.Context, f api.Function, args ...uint64) (uint32, error) {
	results, err := f.Call(ctx, args...)
	if err != nil {
		return 0, err
	}
	result := api.DecodeU32(results[0])
	if result > math.MaxInt32 {
		return 0, errors.New("the grammar failed")
	}
	return result, nil
}

func (in *instance) write(ctx context.Context, text string) error {
	at, err := call(ctx, in.buffer, uint64(len(text)))
	if err == nil && (at == 0 || !in.module.Memory().WriteString(at, text)) {
		err = errors.New("the grammar has no memory left")
	}
	return err
}

func (in *instance) parse(ctx context.Context, text string) ([]record, error) {
	if err := in.write(ctx, text); err != nil {
		return nil, err
	}
	limit := parseTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	if limit <= 0 || ctx.Err() != nil {
		return nil, context.DeadlineExceeded
	}
	// The grammar looks at the clock. wazero could stop it at any instruction, but the
	// checks for that make it four times slower.
	n, err := call(ctx, in.parses, uint64(len(text)), maxRecords, api.EncodeI64(limit.Microseconds()))
	if err != nil {
		return nil, err
	}
	at, err := call(ctx, in.records)
	if err != nil {
		return nil, err
	}
	memory, ok := in.module.Memory().Read(at, n*recordWords*4)
	if !ok {
		return nil, errors.New("the grammar returned records outside of its memory")
	}
	records := make([]record, n)
	for i := range records {
		for j := range recordWords {
			records[i][j] = binary.LittleEndian.Uint32(memory[(i*recordWords+j)*4:])
		}
	}
	return records, nil
}
