//go:build unix

package outline

import (
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// A memory is the memory of an instance, outside of Go's heap: the whole range is reserved,
// and takes memory where it is used. On the heap, wazero copies it each time it grows, and
// the garbage collector lets the heap grow by as much again.
type memory []byte

var allocator = experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
	m, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		m = make([]byte, most)
	}
	return memory(m)
})

func (m memory) Reallocate(size uint64) []byte { return m[:size] }

func (m memory) Free() { _ = syscall.Munmap(m) }
