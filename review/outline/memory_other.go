//go:build !unix

package outline

import "github.com/tetratelabs/wazero/experimental"

// allocator is nil: the memory of instances is on Go's heap.
var allocator experimental.MemoryAllocator
