"""Common words, for values of which no word stands in the agent's tree: others that stand nowhere either."""

_TEXT = """
ant ape arm art ash bag ban bar bat bay bed bee bit bow boy bud bug bun bus cab can cap car cat cod cow cub cup
cut dam day den dew dog dot ear eel egg elk elm eye fan fig fin fir fix fog fox fur gap gem gum gym hat hay hen
hip hut ice ink inn ivy jam jar jaw jet job jug key kid kit lab lap leg lid lip log map mat mix mud mug net nut
oak oar oat oil orb owl pan paw pea pen pet pie pig pin pit pot pub rag ram rat ray rib rod rug rum rye saw sea
sky sun tap tea tie tin toe toy tub urn van vet wax web wig yak yam zoo acid aged arch army atom aunt away axle
baby bake balm band bark barn bath bead beak beam bean bear beer bell belt bend bird boat bone book boot bowl
bulb bush cage cake calf calm camp cane cape card cart cave chef chin clay club coal coat coin cone cook cord
cork corn crab crib crow cube dawn deck deer dice dish dome door dove drum duck dusk dust farm fern file film
fish flag flea foam fork fort frog gate gift girl glue goat gold gulf hail hall hand harp hawk herb hill hive
hood hook horn jail jeep kale king kite knee knot lace lake lamb lamp lane lawn leaf lime lion loaf lock maid
malt mask meal milk mill mint moat moon moss moth nail neck nest noon nose oven palm park path pear pier pine
plum pond pony pool port pump rail rain reef rice ring road robe rock roof room rope rose salt sand seal seed
ship shoe silk sink snow soap sock soil song soup star stem surf swan tail tank tent tide tile toad town tray
tree tube tuna tusk vase veil vest vine wall wasp wave well wolf wood wool worm yard yarn actor alley angel
ankle apple apron arrow attic bacon badge bagel baker beach beard berry birch blade bread brick broom brush
cabin camel candy canoe cargo chain chair chalk cheek chess chest chief child cider cliff clock cloth cloud
clown coach coast cobra comet coral couch crane cream crown curry daisy dance diary diner dozen dress eagle
earth elbow fairy fence ferry field finch flame flock flour flute frost fruit giant glass globe glove grape
grass guard guest guide hazel heron honey horse hotel house ivory jelly jewel judge juice knife ladle lemon
light linen llama lobby maple marsh medal melon metal mocha money month moose motel motor mouse mouth music
nurse ocean olive onion opera orbit otter owner paint panda paper party patch peach pearl pedal penny petal
piano pilot pizza plane plant plate poppy porch pouch prune puppy queen quilt radio ranch raven ridge river
robin robot rodeo salad sauna scarf shark sheep shelf shell shirt shore skate skirt skunk slope smile snail
snake spice spoon squid stage stair steam steel stone stool storm stove straw sugar swamp table thumb tiger
toast tooth torch towel tower train trout truck trunk tulip uncle vapor viola wagon waist waltz water whale
wheat wheel witch woman world yacht zebra almond anchor animal artist autumn bakery banana barrel basket beaver
bottle branch breeze bridge bronze bucket butter button cactus camera candle canyon carbon carpet carrot castle
celery cement cereal cheese cherry church circle circus clover cobble coffee collar cookie copper corner cotton
cousin cowboy coyote cradle crayon dancer danger desert dinner doctor dragon drawer engine fabric falcon family
farmer father ferret finger flower forest galaxy garage garden garlic ginger gloves goblet gravel grocer guitar
hammer harbor helmet hockey hunter icicle insect island jacket jaguar jigsaw jungle kettle kidney kitten ladder
lagoon lawyer leader lizard locket lumber magnet marble market meadow melody mirror monkey mother museum napkin
nature needle nephew nickel orange oyster paddle palace parcel parrot pastry peanut pebble pencil pepper person
picnic pillow pirate planet pocket potato powder prince puddle purple puzzle rabbit racket raisin ribbon rocket
saddle sailor salmon sandal saucer school shadow shovel shower silver singer sister soccer spider spring square
squash statue stream street string summer sunset tailor tavern teapot temple tennis thread ticket timber tomato
tongue trophy tunnel turtle valley velvet violet violin walnut walrus weasel willow window winter wizard zipper
airport apricot avocado balcony balloon bedroom beehive bicycle biscuit blanket blossom boulder buffalo bulldog
cabbage captain caramel caravan chapter cheetah chicken chimney climber coconut compass concert costume cottage
cricket crystal cupcake curtain cyclone dentist diamond dolphin drummer earring emerald evening factory feather
fireman freezer furnace gazelle giraffe glacier gondola gorilla grandma granite hallway hamster harvest highway
holiday iceberg jewelry journey kitchen lantern laundry leopard library lobster luggage machine mailbox mammoth
mansion mariner monarch morning mustard octopus orchard ostrich painter panther parsley pasture peacock pelican
penguin perfume pianist pilgrim plumber popcorn pottery present pumpkin pyramid raccoon railway rainbow rooster
satchel scooter seagull sheriff snowman soldier sparrow spinach stadium station swallow sweater teacher theater
thunder tornado tractor trumpet tugboat vampire vanilla village vinegar volcano vulture weather whisker broccoli
cardinal chipmunk cinnamon clarinet cucumber customer daughter eggplant elephant explorer flamingo gardener
goldfish haystack hospital kangaroo merchant mountain mushroom necklace notebook pharmacy postcard sandwich
seashell shepherd squirrel sunlight umbrella windmill workshop hurricane orchestra passenger porcupine saxophone
sunflower waterfall lighthouse restaurant
"""
SPARE_WORDS = tuple(_TEXT.split())
