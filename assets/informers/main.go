// Command informers follows a namespace with client-go's shared informers through a burst of changes of its own making,
// and prints what the caches hold in the end.
//
// The end-to-end tests run it against our server and compare with what the server has. Exit status 0 with a JSON report on
// stdout, 1 with a sentence on stderr. WatchList is switched by client-go's KUBE_FEATURE_WatchListClient.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const patience = 45 * time.Second

// report is what the program prints: resource -> name of the object -> its resourceVersion.
type report struct {
	// Caches is what the informers' stores hold.
	Caches map[string]map[string]string `json:"caches"`
	// Handlers is what somebody knows who only listens to the events of the informers.
	Handlers map[string]map[string]string `json:"handlers"`
	// Problems is what the caches complained of, in order.
	Problems []string `json:"problems"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how the server is reached")
	namespace := flag.String("namespace", "default", "where the objects are; it must exist and hold nothing else")
	client := flag.String("client", "json", "json, protobuf, dynamic or metadata")
	count := flag.Int("count", 20, "how many objects of each kind are made")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := run(ctx, *kubeconfig, *client, burst{namespace: *namespace, count: *count})
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, client string, changes burst) (*report, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 500
	followers, err := follow(ctx, config, client, changes.namespace)
	if err != nil {
		return nil, err
	}
	if err := changes.make(ctx, config); err != nil {
		return nil, err
	}
	for _, each := range followers {
		if err := each.catchUp(ctx); err != nil {
			return nil, err
		}
	}
	return told(followers), nil
}

func told(followers []*follower) *report {
	found := &report{map[string]map[string]string{}, map[string]map[string]string{}, []string{}}
	for _, each := range followers {
		found.Caches[each.resource] = each.cached()
		found.Handlers[each.resource] = each.heard()
		found.Problems = append(found.Problems, each.complaints()...)
	}
	return found
}

// speaking gives a configuration whose requests have the content type, and which takes no answer in another.
func speaking(config *rest.Config, contentType string) *rest.Config {
	spoken := rest.CopyConfig(config)
	spoken.ContentType = contentType
	spoken.AcceptContentTypes = contentType
	return spoken
}
