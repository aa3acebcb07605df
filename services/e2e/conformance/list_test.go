package conformance_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// many makes n finished tasks in a new context.
func (c *caller) many(n int) (contextID string, ids []string) {
	c.t.Helper()
	contextID = "c-" + uuid.NewString()
	var mu sync.Mutex
	var sends sync.WaitGroup
	for range n {
		sends.Go(func() {
			answer, err := c.Call(within(c.t), binding.SendMessage, say("echo", inContext(contextID)))
			if err != nil || answer.Err != nil {
				c.t.Errorf("send: %v %v", err, answer)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, answer.Result.(*a2apb.SendMessageResponse).GetTask().GetId())
		})
	}
	sends.Wait()
	require.Len(c.t, ids, n)
	return contextID, ids
}

// pages reads the list to its end.
func (c *caller) pages(in *a2apb.ListTasksRequest) [][]*a2apb.Task {
	c.t.Helper()
	var pages [][]*a2apb.Task
	for {
		got := c.list(in)
		pages = append(pages, got.GetTasks())
		if got.GetNextPageToken() == "" {
			return pages
		}
		require.Len(c.t, got.GetTasks(), int(got.GetPageSize()), "a page before the last is full")
		in.PageToken = got.GetNextPageToken()
	}
}

// CORE-LIST-002, CORE-LIST-003, CORE-LIST-004, CORE-LIST-005, A2A §3.1.4: 50 and
// 51 tasks lie on both sides of the default page.
func TestListsComeInPagesOrderedByTime(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, n := range []int{50, 51} {
			contextID, ids := c.many(n)
			first := c.list(&a2apb.ListTasksRequest{ContextId: contextID})
			require.Len(t, first.GetTasks(), 50)
			require.Equal(t, int32(50), first.GetPageSize())
			require.Equal(t, int32(n), first.GetTotalSize())
			require.Equal(t, n > 50, first.GetNextPageToken() != "")

			for _, size := range []int32{1, 7, 25, 100} {
				all := slices.Concat(c.pages(&a2apb.ListTasksRequest{ContextId: contextID, PageSize: &size})...)
				require.ElementsMatch(t, ids, idsOf(all), "page size %d", size)
				require.True(t, slices.IsSortedFunc(all, func(a, b *a2apb.Task) int {
					return b.GetStatus().GetTimestamp().AsTime().Compare(a.GetStatus().GetTimestamp().AsTime())
				}), "newest first")
				for _, task := range all {
					require.Empty(t, task.GetArtifacts())
				}
			}
		}
	})
}

func idsOf(tasks []*a2apb.Task) []string {
	all := make([]string, 0, len(tasks))
	for _, task := range tasks {
		all = append(all, task.GetId())
	}
	return all
}

// A row that does not move is neither skipped nor repeated; one that moves while
// a sender pages may be missed and is never seen twice.
func TestPagingIsStableWhileTasksMove(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		contextID, still := c.many(20)
		var moving []string
		for range 20 {
			moving = append(moving, c.send(say("ask", inContext(contextID))).GetId())
		}
		size := int32(5)
		in := &a2apb.ListTasksRequest{ContextId: contextID, PageSize: &size}
		var seen []string
		for page := 0; ; page++ {
			got := c.list(in)
			seen = append(seen, idsOf(got.GetTasks())...)
			if got.GetNextPageToken() == "" {
				break
			}
			in.PageToken = got.GetNextPageToken()
			for range 2 {
				if page < 8 && len(moving) > 0 {
					c.send(say("answer", toTask(moving[len(moving)-1])))
					moving = moving[:len(moving)-1]
				}
			}
			c.send(say("echo", inContext(contextID))) // new ones appear in front
		}
		require.Subset(t, seen, still)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(seen))), len(seen), "a task was seen twice")
	})
}

// A2A §3.1.4: filters, alone and together.
func TestListFiltersCombine(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		contextID := "c-" + uuid.NewString()
		done := c.send(say("echo", inContext(contextID)))
		asked := c.send(say("ask", inContext(contextID)))
		elsewhere := c.send(say("echo"))
		for _, tc := range []struct {
			in   *a2apb.ListTasksRequest
			want []string
		}{
			{&a2apb.ListTasksRequest{ContextId: contextID}, []string{asked.GetId(), done.GetId()}},
			{&a2apb.ListTasksRequest{ContextId: contextID, Status: inputRequired}, []string{asked.GetId()}},
			{&a2apb.ListTasksRequest{ContextId: contextID, Status: failed}, []string{}},
			{&a2apb.ListTasksRequest{ContextId: elsewhere.GetContextId(), Status: completed}, []string{elsewhere.GetId()}},
			{&a2apb.ListTasksRequest{ContextId: contextID, StatusTimestampAfter: asked.GetStatus().GetTimestamp()}, []string{asked.GetId()}},
			{&a2apb.ListTasksRequest{ContextId: contextID, StatusTimestampAfter: timestamppb.New(time.Now().Add(time.Hour))}, []string{}},
		} {
			got := c.list(tc.in)
			if tc.in.GetStatusTimestampAfter() != nil && len(got.GetTasks()) == 2 &&
				done.GetStatus().GetTimestamp().AsTime().Equal(asked.GetStatus().GetTimestamp().AsTime()) {
				continue // both within the same millisecond
			}
			require.Equal(t, tc.want, idsOf(got.GetTasks()), "%v", tc.in)
			require.Equal(t, len(tc.want), int(got.GetTotalSize()))
		}
		with := c.list(&a2apb.ListTasksRequest{ContextId: contextID, Status: completed, IncludeArtifacts: new(true)})
		c.requireEqual(done, with.GetTasks()[0])
	})
}

// Times are compared as times: the filter is inclusive to the millisecond, and
// an offset is never misread.
func TestTheTimeFilterIsInclusive(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		done := c.send(say("echo"))
		at := done.GetStatus().GetTimestamp().AsTime()
		require.Zero(t, at.Nanosecond()%int(time.Millisecond))
		for offset, want := range map[time.Duration]int{
			-time.Millisecond: 1, -time.Nanosecond: 1, 0: 1, time.Nanosecond: 0, time.Millisecond: 0, time.Second: 0,
		} {
			in := &a2apb.ListTasksRequest{ContextId: done.GetContextId(), StatusTimestampAfter: timestamppb.New(at.Add(offset))}
			require.Len(t, c.list(in).GetTasks(), want, "%s after the status", offset)
		}
	})
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, b binding.JSON) {
		done := c.send(say("echo"))
		at := done.GetStatus().GetTimestamp().AsTime()
		east := time.FixedZone("", 2*60*60)
		for when, want := range map[time.Time]int{at: 1, at.Add(time.Millisecond): 0} {
			params := fmt.Sprintf(`{"contextId":%q,"statusTimestampAfter":%q}`, done.GetContextId(), when.In(east).Format(time.RFC3339Nano))
			answer, err := b.CallJSON(within(t), binding.ListTasks, params)
			require.NoError(t, err)
			if answer.Err != nil {
				invalidParams.check(t, b, answer)
				continue
			}
			require.Len(t, answer.Result.(*a2apb.ListTasksResponse).GetTasks(), want, params)
		}
	})
}

// CORE-LIST-002: a token is one that we gave, for these filters.
func TestForeignPageTokensAreRefused(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		contextID, _ := c.many(3)
		one := int32(1)
		token := c.list(&a2apb.ListTasksRequest{ContextId: contextID, PageSize: &one}).GetNextPageToken()
		require.NotEmpty(t, token)
		flipped := []byte(token)
		flipped[len(flipped)/2] ^= 1
		junk := base64.RawURLEncoding.EncodeToString([]byte("no cursor of ours"))
		for _, bad := range []string{"abc", "\x00", strings.Repeat("A", 10_000), junk, token + "A", token[1:], strings.ToUpper(token), string(flipped), " " + token} {
			c.invalid("pageToken", binding.ListTasks, &a2apb.ListTasksRequest{ContextId: contextID, PageSize: &one, PageToken: bad})
		}
		for _, other := range []*a2apb.ListTasksRequest{
			{ContextId: "another"}, {}, {ContextId: contextID, Status: completed},
			{ContextId: contextID, StatusTimestampAfter: timestamppb.New(time.Unix(0, 0))},
		} {
			other.PageToken = token
			c.invalid("pageToken", binding.ListTasks, other)
		}
		// Another page size, another binding: the same list.
		two := int32(2)
		for _, other := range callers(t, c.cluster, c.agent) {
			got := other.list(&a2apb.ListTasksRequest{ContextId: contextID, PageSize: &two, PageToken: token})
			require.Len(t, got.GetTasks(), 2)
		}
		other := c.to(probeAgent)
		other.invalid("pageToken", binding.ListTasks, &a2apb.ListTasksRequest{ContextId: contextID, PageToken: token})
	})
}

// CORE-LIST-001: who pages from the start at any time sees each page end.
func TestTheListOfAllTasksCanBeReadWhileOthersWork(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := callers(t, cluster, defaultAgent)[1]
		mine := c.send(say("ask"))
		hundred := int32(100)
		all := slices.Concat(c.pages(&a2apb.ListTasksRequest{PageSize: &hundred, Status: inputRequired})...)
		require.Contains(t, idsOf(all), mine.GetId())
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(idsOf(all)))), len(all))
	})
}
