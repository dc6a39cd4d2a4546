package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var followed = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
}

// follower is one informer, what its handler heard, and a way to ask the server itself.
type follower struct {
	resource string
	informer cache.SharedIndexInformer
	live     func(context.Context) (map[string]string, error)

	mutex    sync.Mutex
	known    map[string]string
	problems []string
}

// follow starts an informer for each resource of the namespace, through the kind of client, and waits until they have synced.
func follow(ctx context.Context, config *rest.Config, client, namespace string) ([]*follower, error) {
	informerOf, err := source(config, client, namespace)
	if err != nil {
		return nil, err
	}
	lister, err := metadata.NewForConfig(speaking(config, "application/json"))
	if err != nil {
		return nil, err
	}
	var all []*follower
	for _, gvr := range followed {
		informer, err := informerOf(gvr)
		if err != nil {
			return nil, err
		}
		each := &follower{resource: gvr.Resource, informer: informer, known: map[string]string{}}
		each.live = func(ctx context.Context) (map[string]string, error) {
			list, err := lister.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			return versions(list.Items), nil
		}
		if err := each.start(ctx); err != nil {
			return nil, err
		}
		all = append(all, each)
	}
	return all, nil
}

// source gives the informers of a kind of client.
func source(
	config *rest.Config, client, namespace string,
) (func(schema.GroupVersionResource) (cache.SharedIndexInformer, error), error) {
	switch client {
	case "json", "protobuf":
		contentType := map[string]string{"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"}
		typed, err := kubernetes.NewForConfig(speaking(config, contentType[client]))
		if err != nil {
			return nil, err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace))
		return func(gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			informer, err := factory.ForResource(gvr)
			if err != nil {
				return nil, err
			}
			return informer.Informer(), nil
		}, nil
	case "dynamic":
		untyped, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, namespace, nil)
		return func(gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			return factory.ForResource(gvr).Informer(), nil
		}, nil
	case "metadata":
		bare, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := metadatainformer.NewFilteredSharedInformerFactory(bare, 0, namespace, nil)
		return func(gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			return factory.ForResource(gvr).Informer(), nil
		}, nil
	}
	return nil, fmt.Errorf("no kind of client is called %s", client)
}

func (f *follower) start(ctx context.Context) error {
	if err := f.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		f.complain(fmt.Sprintf("%s: %v", f.resource, err))
	}); err != nil {
		return err
	}
	registered, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.hear(obj, false) },
		UpdateFunc: func(_, obj any) { f.hear(obj, false) },
		DeleteFunc: func(obj any) { f.hear(obj, true) },
	})
	if err != nil {
		return err
	}
	go f.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return fmt.Errorf("%s did not sync: %v", f.resource, f.complaints())
	}
	return nil
}

func (f *follower) hear(obj any, isGone bool) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	found, err := meta.Accessor(obj)
	if err != nil {
		f.complain(err.Error())
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if isGone {
		delete(f.known, found.GetName())
	} else {
		f.known[found.GetName()] = found.GetResourceVersion()
	}
}

func (f *follower) complain(problem string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.problems = append(f.problems, problem)
}

func (f *follower) complaints() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return append([]string(nil), f.problems...)
}

func (f *follower) heard() map[string]string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return maps.Clone(f.known)
}

func (f *follower) cached() map[string]string {
	found := map[string]string{}
	for _, obj := range f.informer.GetStore().List() {
		if each, err := meta.Accessor(obj); err == nil {
			found[each.GetName()] = each.GetResourceVersion()
		}
	}
	return found
}

// catchUp waits until the cache and the handler know what the server has.
func (f *follower) catchUp(ctx context.Context) error {
	for {
		live, err := f.live(ctx)
		if err != nil {
			return err
		}
		if maps.Equal(live, f.cached()) && maps.Equal(live, f.heard()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"%s: the server has %v, the cache %v, the handler %v; %v",
				f.resource, live, f.cached(), f.heard(), f.complaints(),
			)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func versions(items []metav1.PartialObjectMetadata) map[string]string {
	found := map[string]string{}
	for _, each := range items {
		found[each.Name] = each.ResourceVersion
	}
	return found
}
